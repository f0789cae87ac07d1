// Package upgrade says how to upgrade the Slurm of a cluster: in which order, what restarts, and what waits for jobs.
//
// Slurm requires the order slurmdbd, slurmctld, then the rest, and its daemons talk to those of the three previous
// releases. The operator validates the configuration on the new release before it replaces slurmctld, replaces slurmd
// pods only after their jobs, and holds back settings that older slurmds do not know.
package upgrade

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/plugin/output"
	"github.com/slurm-operator/slurm-operator/internal/slurm"
	"github.com/slurm-operator/slurm-operator/internal/slurmconf"
)

// An Input is what is known about a cluster.
type Input struct {
	To         string
	Controller *slinkyv1beta1.Controller
	// Accounting is nil if there is none.
	Accounting *slinkyv1beta1.Accounting
	RestAPIs   []slinkyv1beta1.RestApi
	LoginSets  []slinkyv1beta1.LoginSet
	NodeSets   []slinkyv1beta1.NodeSet
	// Images are those of daemons in their specs, or of those that run, by daemon/instance.
	Images map[string]string
	// SlurmNodes are as Slurm shows them; nil if it was not asked.
	SlurmNodes []slurm.Node
	// InForce is the slurm.conf in force.
	InForce slurmconf.Document
}

// A Plan is how to upgrade.
type Plan struct {
	From  string   `json:"from"`
	To    string   `json:"to"`
	Steps []Step   `json:"steps"`
	Notes []string `json:"notes,omitempty"`
}

// A Step is one step of an upgrade.
type Step struct {
	What     string `json:"what"`
	Restarts string `json:"restarts"`
	Waits    string `json:"waits,omitempty"`
	Run      string `json:"run,omitempty"`
	Wait     string `json:"wait,omitempty"`
}

// Of makes a plan.
func Of(in *Input) (Plan, error) {
	from := in.Controller.Status.SlurmVersion
	if err := check(from, in.To); err != nil {
		return Plan{}, err
	}
	plan := Plan{From: from, To: in.To, Steps: []Step{{
		What: "back up slurmctld's state and the accounting database", Restarts: "nothing",
		Waits: "a downgrade is not possible: it means restoring this backup",
		Run:   "see docs/backup.md#back-up",
	}}}
	in.addControl(&plan)
	in.addNodes(&plan)
	in.addNotes(&plan)
	return plan, nil
}

// check returns why an upgrade is not possible.
func check(from, to string) error {
	target, err := slurm.ParseVersion(to)
	if err != nil || target.Minor != 5 && target.Minor != 11 {
		return fmt.Errorf("%q is no release of Slurm, which are named like 25.11 and 26.05.5", to)
	}
	current, err := slurm.ParseVersion(from)
	if err != nil {
		return errors.New("the cluster's release is not known, because Slurm does not answer; see kubectl slurm doctor")
	}
	switch {
	case current.IsLater(target):
		return fmt.Errorf("the cluster runs %s, and Slurm does not read the state of a newer release: to return to %s, "+
			"restore a backup from before the upgrade", from, to)
	case !target.Understands(current):
		return fmt.Errorf("release %s of Slurm does not talk to daemons of %s; upgrade to %s first", to, from,
			current.LastToUnderstand())
	}
	return nil
}

// AddSpecs adds the images that specs name: a pod of them may not run yet, or no more.
func (in *Input) AddSpecs() {
	add := func(daemon naming.Daemon, name string, fragment slinkyv1beta1.ContainerFragment) {
		var container struct {
			Image string `json:"image"`
		}
		if !fragment.IsZero() && json.Unmarshal(fragment.Raw, &container) == nil && container.Image != "" {
			in.Images[string(daemon)+"/"+name] = container.Image
		}
	}
	if in.Accounting != nil {
		add(naming.Slurmdbd, in.Accounting.Name, in.Accounting.Spec.Slurmdbd)
	}
	add(naming.Slurmctld, in.Controller.Name, in.Controller.Spec.Slurmctld)
	for i := range in.RestAPIs {
		add(naming.Slurmrestd, in.RestAPIs[i].Name, in.RestAPIs[i].Spec.Slurmrestd)
	}
	for i := range in.NodeSets {
		add(naming.Slurmd, in.NodeSets[i].Name, in.NodeSets[i].Spec.Slurmd)
	}
	for i := range in.LoginSets {
		add(naming.Login, in.LoginSets[i].Name, in.LoginSets[i].Spec.Login)
	}
}

// addControl adds the steps for slurmdbd, slurmctld and slurmrestd.
func (in *Input) addControl(plan *Plan) {
	if in.Accounting != nil && !in.Accounting.Spec.External {
		plan.Steps = append(plan.Steps, in.step(Step{
			What:     "slurmdbd: Accounting " + in.Accounting.Name,
			Restarts: "slurmdbd, for seconds, or longer while it converts the database; slurmctld keeps its records meanwhile",
			Waits:    "nothing; jobs run and start",
		}, "accounting", in.Accounting.Name, naming.Slurmdbd))
	}
	if !in.Controller.Spec.External {
		plan.Steps = append(plan.Steps, in.step(Step{
			What: "slurmctld: Controller " + in.Controller.Name,
			Restarts: "slurmctld, for seconds, after a throwaway slurmctld of the new release has accepted the " +
				"configuration; jobs run on, and clients retry",
			Waits: "nothing",
		}, "controller", in.Controller.Name, naming.Slurmctld))
	}
	for i := range in.RestAPIs {
		name := in.RestAPIs[i].Name
		plan.Steps = append(plan.Steps, in.step(Step{
			What: "slurmrestd: RestApi " + name, Restarts: "slurmrestd, pod by pod", Waits: "nothing",
		}, "restapi", name, naming.Slurmrestd))
	}
}

// addNodes adds the steps for slurmd and login pods.
func (in *Input) addNodes(plan *Plan) {
	for i := range in.NodeSets {
		set := &in.NodeSets[i]
		plan.Steps = append(plan.Steps, in.step(Step{
			What:     "slurmd: NodeSet " + set.Name,
			Restarts: output.Plural(int(set.Status.Replicas), "slurmd pod") + ", each after its Slurm node is drained",
			Waits: fmt.Sprintf("the jobs on each node (%s busy now); %s",
				output.Plural(int(set.Status.SlurmAllocated), "node"), strategy(set)),
		}, "nodeset", set.Name, naming.Slurmd))
	}
	for i := range in.LoginSets {
		name := in.LoginSets[i].Name
		plan.Steps = append(plan.Steps, in.step(Step{
			What: "login pods: LoginSet " + name, Restarts: "the login pods; the sessions of users end",
			Waits: "nothing: choose a suitable time",
		}, "loginset", name, naming.Login))
	}
}

// strategy describes how a NodeSet replaces pods.
func strategy(set *slinkyv1beta1.NodeSet) string {
	switch update := set.Spec.UpdateStrategy; update.Type {
	case slinkyv1beta1.OnDelete:
		return "pods are replaced when you delete them"
	case slinkyv1beta1.ScheduledUpdate:
		return "pods are replaced in the reservation of updateStrategy.scheduledUpdate"
	case slinkyv1beta1.RollingUpdate:
		if rolling := update.RollingUpdate; rolling != nil && rolling.MaxUnavailable != nil {
			return "at most " + rolling.MaxUnavailable.String() + " of the pods at a time"
		}
	}
	return "at most 25% of the pods at a time"
}

// fragments are the fields with the container of a daemon.
var fragments = map[naming.Daemon]string{
	naming.Slurmdbd: "slurmdbd", naming.Slurmctld: "slurmctld", naming.Slurmrestd: "slurmrestd", naming.Slurmd: "slurmd",
	naming.Login: "login",
}

// step adds the commands to a step.
func (in *Input) step(step Step, kind, name string, daemon naming.Daemon) Step {
	image := withRelease(in.Images[string(daemon)+"/"+name], in.To)
	if image == "" {
		image = fmt.Sprintf("IMAGE_OF_%s_%s", strings.ToUpper(string(daemon)), in.To)
	}
	object := kind + "/" + name
	step.Run = fmt.Sprintf(`kubectl --namespace %s patch %s --type=merge --patch='{"spec":{"%s":{"image":"%s"}}}'`,
		in.Controller.Namespace, object, fragments[daemon], image)
	step.Wait = fmt.Sprintf("kubectl --namespace %s wait %s --for=condition=Ready --timeout=-1s", in.Controller.Namespace,
		object)
	return step
}

// release matches the release of Slurm at the beginning of a tag, such as 24.11.5 in 24.11.5-ubuntu24.04.
var release = regexp.MustCompile(`^v?\d\d\.\d\d(\.\d+)?(\.\d+)?`)

// withRelease replaces the release in the tag of an image; empty if the tag has none.
func withRelease(image, to string) string {
	image, _, _ = strings.Cut(image, "@")
	colon := strings.LastIndexByte(image, ':')
	if colon < strings.LastIndexByte(image, '/') {
		return ""
	}
	is := release.FindString(image[colon+1:])
	if is == "" {
		return ""
	}
	return image[:colon+1] + to + image[colon+1+len(is):]
}

// addNotes adds what else to know.
func (in *Input) addNotes(plan *Plan) {
	written := slurmconf.Written(in.Controller.Spec.ExtraConf)
	_, held := slurmconf.HoldBack(written, in.InForce, func(release string) bool {
		needed, err := slurm.ParseVersion(release)
		current, currentErr := slurm.ParseVersion(plan.From)
		return err == nil && currentErr == nil && current.Compare(needed) < 0
	})
	if len(held) > 0 {
		plan.Notes = append(plan.Notes, "held back until the last older slurmd is gone, which would exit because of them, "+
			"with its jobs: "+strings.Join(held, ", "))
	}
	target, _ := slurm.ParseVersion(plan.To) // it was checked
	mute := map[string]int{}
	for i := range in.SlurmNodes {
		if version, err := slurm.ParseVersion(in.SlurmNodes[i].Version); err == nil && !target.Understands(version) {
			mute[version.Series()]++
		}
	}
	for _, series := range slices.Sorted(maps.Keys(mute)) {
		plan.Notes = append(plan.Notes, fmt.Sprintf("slurmctld %s does not talk to the slurmd %s of %s: upgrade it first",
			plan.To, series, output.Plural(mute[series], "node")))
	}
	plan.Notes = append(plan.Notes,
		"make sure that each image exists before you patch; IMAGE_OF_… stands for one whose name cannot be derived from the "+
			"present one",
		"with the chart slurm, set the images in its values instead, one daemon after the other, or image.tag for all: a patched "+
			"image lasts until the next helm upgrade",
		"other files, such as cgroup.conf, are passed on unchanged: keep new keys out of them until all nodes are upgraded")
}

// Draw writes the plan.
func (p *Plan) Draw(page *output.Page) {
	page.Line("From Slurm %s to %s. Wait after each step until it is done.", p.From, p.To)
	for i, step := range p.Steps {
		page.Line("\n%s", page.Bold(fmt.Sprintf("%d. %s", i+1, step.What)))
		page.Line("   restarts: %s", step.Restarts)
		if step.Waits != "" {
			page.Line("   waits for: %s", step.Waits)
		}
		page.Line("   run: %s", step.Run)
		if step.Wait != "" {
			page.Line("   then: %s", step.Wait)
		}
	}
	page.Line("")
	page.Notes(p.Notes)
}
