package naming

// Images are what the containers run unless a spec says otherwise.
type Images struct {
	// Repository and Tag make the names of the images of Slurm's daemons: <repository>/<daemon>:<tag>.
	Repository, Tag string
	// Operator is the operator's own image, for its helpers inside of pods.
	Operator string
}

// For is the image of a daemon.
func (i Images) For(daemon Daemon) string {
	return i.Repository + "/" + string(daemon) + ":" + i.Tag
}
