package advice

import (
	"maps"
	"slices"
)

// programs are those whose commands are checked.
func programs() []string {
	return append([]string{"kubectl", "helm"}, slices.Sorted(maps.Keys(tools))...)
}

// prose are words that follow the name of a program in a sentence.
var prose = []string{
	"and", "are", "as", "at", "can", "does", "for", "has", "in", "is", "knows", "may", "or", "printed", "shows", "that",
	"to", "which", "while",
}

// containers are those of the pods that the operator makes, and podNames the values of their label
// app.kubernetes.io/name.
var (
	containers = []string{
		"install-helper", "slurmctld", "reconfigure", "logfile", "slurmd", "slurmdbd", "slurmrestd", "login", "manager",
	}
	podNames = []string{
		"slurmctld", "slurmd", "slurmdbd", "slurmrestd", "login", "slurmctld-trial", "slurm-operator", "kubectl-slurm-check",
	}
)

// builtIn are the names of resources of Kubernetes and of what is installed beside the operator.
const builtIn = "all certificate certificates.cert-manager.io clusterrole clusterrolebinding configmap configmaps " +
	"controllerrevisions crd crds customresourcedefinition customresourcedefinitions daemonset deployment deployments " +
	"endpointslices event events job lease leases limitrange mutatingwebhookconfiguration namespace namespaces " +
	"networkpolicies networkpolicy no node nodes persistentvolume persistentvolumeclaim persistentvolumeclaims " +
	"persistentvolumes po pod poddisruptionbudget poddisruptionbudgets pods provisioningrequest provisioningrequests pvc " +
	"resourcequota resourcequotas role rolebinding roles secret secrets service serviceaccount serviceaccounts " +
	"servicemonitor services statefulset statefulsets storageclass storageclasses validatingwebhookconfiguration"

// kubectlFlags are the flags of all commands of kubectl; an equals sign says that a flag takes a value.
const kubectlFlags = "namespace= n= context= kubeconfig= as= as-group= server= s= request-timeout= user= cluster= v= help h"

const (
	selection = "selector= l= all-namespaces A field-selector= "
	printing  = "output= o= show-managed-fields template= no-headers "
	files     = "filename= f= recursive R kustomize= k= "
	dryRun    = "dry-run= field-manager= "
)

// kubectlVerbs are the commands of kubectl, with their flags.
var kubectlVerbs = map[string]string{
	"annotate": selection + files + dryRun + "output= o= overwrite all list resource-version=",
	"apply":    files + dryRun + "output= o= server-side force-conflicts force prune selector= l= wait validate=",
	"attach":   "container= c= stdin i tty t",
	"auth":     "all-namespaces A list no-headers quiet q subresource=",
	"config":   "current minify raw flatten output= o=",
	"cordon":   "selector= l= dry-run=",
	"create": files + dryRun + "output= o= save-config validate= from-file= from-literal= clusterrole= group= user= role= " +
		"serviceaccount= duration= audience= type= cert= key= docker-server= docker-username= docker-password= image= " +
		"docker-email= verb= resource=",
	"debug":    "stdin i tty t image= target= profile= attach quiet q container= c= copy-to= share-processes",
	"delete":   selection + files + "all cascade= force grace-period= ignore-not-found now output= o= timeout= wait dry-run=",
	"describe": selection + files + "show-events chunk-size=",
	"diff":     files + "server-side selector= l=",
	"drain": "ignore-daemonsets delete-emptydir-data force grace-period= timeout= selector= l= pod-selector= " +
		"disable-eviction dry-run=",
	"edit":          files + "output= o= save-config subresource=",
	"events":        "for= watch w types= all-namespaces A output= o= no-headers",
	"exec":          "container= c= stdin i tty t quiet q",
	"explain":       "recursive output= api-version=",
	"get":           selection + files + printing + "watch w watch-only show-labels sort-by= ignore-not-found label-columns= L= raw= show-kind subresource=",
	"label":         selection + files + dryRun + "overwrite all list output= o=",
	"logs":          "container= c= follow f previous p tail= since= since-time= timestamps all-containers selector= l= prefix",
	"patch":         files + dryRun + "type= patch= p= patch-file= subresource= output= o=",
	"port-forward":  "address= pod-running-timeout=",
	"proxy":         "port= p= address=",
	"replace":       files + dryRun + "force cascade= subresource= output= o=",
	"rollout":       files + "selector= l= revision= to-revision= timeout= watch w",
	"run":           "image= restart= rm stdin i tty t command env= labels= l= overrides= quiet q attach dry-run=",
	"scale":         files + "replicas= current-replicas= all selector= l= timeout= dry-run= output= o=",
	"taint":         "all selector= l= overwrite dry-run=",
	"top":           "selector= l= all-namespaces A containers sort-by= no-headers",
	"uncordon":      "selector= l= dry-run=",
	"version":       "client output= o=",
	"wait":          selection + files + "for= timeout= all",
	"api-resources": "api-group= namespaced output= o= verbs= categories=",
	"kustomize":     "", "plugin": "", "completion": "", "cluster-info": "",
}

// kubectlWithoutResource are the commands whose first argument is no type of a resource.
var kubectlWithoutResource = []string{
	"apply", "attach", "auth", "config", "cordon", "create", "debug", "diff", "drain", "exec", "logs", "port-forward",
	"proxy", "replace", "run", "top", "uncordon", "version", "api-resources", "kustomize", "plugin", "completion",
	"cluster-info",
}

// helmFlags are the flags of all commands of Helm.
const helmFlags = "namespace= n= kube-context= kubeconfig= debug"

const (
	helmValues = "set= set-string= set-json= set-file= values= f= version= devel repo= verify "
	helmDeploy = "create-namespace wait wait-for-jobs timeout= atomic dry-run= take-ownership no-hooks skip-crds " +
		"description= dependency-update output= o= "
)

// helmVerbs are the commands of Helm, with their flags.
var helmVerbs = map[string]string{
	"install": helmValues + helmDeploy + "generate-name g replace",
	"upgrade": helmValues + helmDeploy + "install i reuse-values reset-values reset-then-reuse-values force history-max= " +
		"cleanup-on-fail",
	"uninstall": "wait timeout= keep-history cascade= dry-run ignore-not-found no-hooks",
	"rollback":  "wait timeout= force cleanup-on-fail no-hooks recreate-pods",
	"template":  helmValues + "show-only= s= include-crds api-versions= a= kube-version= output-dir= validate",
	"get":       "all a output= o= revision=",
	"list":      "all-namespaces A all a output= o= filter= f= q short",
	"history":   "max= output= o=",
	"show":      "version=", "status": "output= o= revision=", "pull": "version= untar untardir= d= destination=",
	"push": "", "package": "destination= d= version= app-version= sign", "lint": helmValues + "strict", "repo": "",
	"dependency": "", "version": "short", "test": "logs timeout=", "registry": "", "plugin": "",
}

const (
	nodeKeys = "nodename state reason weight features activefeatures availablefeatures gres comment extra resumeafter " +
		"topology nodeaddr nodehostname cpubind instanceid instancetype "
	jobKeys = "jobid job jobname name account partition qos priority nice timelimit starttime deadline dependency " +
		"reservationname numnodes numcpus numtasks minmemorycpu minmemorynode mincpusnode arraytaskthrottle comment " +
		"admincomment extra features gres nodelist reqnodelist excnodelist licenses requeue delayboot shared oversubscribe "
	partitionKeys = "partitionname nodes default maxtime maxnodes minnodes allowaccounts allowgroups allowqos denyaccounts " +
		"denyqos priorityjobfactor prioritytier oversubscribe hidden rootonly qos defaulttime defmempercpu maxmempercpu "
	reservationKeys = "reservation reservationname starttime endtime duration users user accounts nodes nodecnt corecnt " +
		"flags features partitionname licenses tres groups skip maxstartdelay purgecomp comment "
	shown = "aliases assoc_mgr bbstat burstbuffer config daemons dwstat federation hostlist hostlistsorted hostnames job jobs " +
		"licenses node nodes partition partitions reservation reservations slurmd step steps topoconf topology "
	entities = "account accounts association associations assoc cluster clusters configuration coordinator event events " +
		"federation instance job jobs problem problems qos reservation reservations resource resources runawayjobs stats " +
		"transaction transactions tres user users wckey wckeys "
	conditions = "set where name account accounts user users cluster clusters qos defaultaccount defaultqos adminlevel " +
		"fairshare format grpjobs grpsubmitjobs grptres grptresmins maxjobs maxsubmitjobs maxtrespj maxtresperjob maxtresperuser " +
		"maxtrespu maxwall maxwalldurationperjob parent partition priority organization description start end withassoc tree " +
		"flags preempt id jobs states nodes "
	jobOptions = "account= A= array= a= begin= b= chdir= D= comment= constraint= C= container= cpu-bind= cpus-per-task= c= " +
		"dependency= d= error= e= exclude= x= exclusive export= extra= gpus= G= gpus-per-node= gpus-per-task= gres= hold H " +
		"immediate input= i= job-name= J= jobid= kill-on-bad-exit K label l licenses= L= mem= mem-per-cpu= mpi= nice= " +
		"no-requeue nodefile= nodelist= w= nodes= N= ntasks= n= ntasks-per-node= open-mode= output= o= overcommit O overlap " +
		"oversubscribe s parsable partition= p= priority= prolog= epilog= pty qos= q= quiet Q requeue reservation= " +
		"segment= signal= test-only threads-per-core= time= t= tmp= uid= unbuffered u verbose v wait= W= wckey= wrap= x11 "
)

// states are those that an administrator can give to nodes and partitions.
var states = []string{
	"cancel_reboot", "down", "drain", "fail", "future", "idle", "inactive", "noresp", "power_down", "power_down_asap",
	"power_down_force", "power_up", "resume", "undrain", "up",
}

// tools are the programs of Slurm, of 24.11 and later.
var tools = map[string]tool{
	"scontrol": {
		flags: "all a details d hide oneliner o quiet Q verbose v uid= u= cluster= M= future F local federation json yaml",
		words: map[string]string{
			"show": shown, "update": nodeKeys + jobKeys + partitionKeys + reservationKeys + "steps stepid",
			"create": nodeKeys + partitionKeys + reservationKeys, "delete": "nodename partitionname reservationname reservation",
			"hold": "", "release": "", "requeue": "", "requeuehold": "", "resume": "", "suspend": "", "top": "", "uhold": "",
			"cancel_reboot": "", "reboot": "", "power": "up down asap force",
			"reconfigure": "", "ping": "", "takeover": "", "shutdown": "", "token": "lifespan username", "version": "",
			"setdebug": "", "setdebugflags": "", "schedloglevel": "", "write": "batch_script config", "wait_job": "",
			"listpids": "", "notify": "", "getaddrs": "", "fsdampeningfactor": "", "errnumstr": "", "listjobs": "",
		},
	},
	"sinfo": {
		flags: "all a clusters= M= cluster= dead d exact e format= o= Format= O= federation hide iterate= i= long l " +
			"list-reasons R local nodes= n= Node N noconvert noheader h partition= p= reservation T responding r states= t= " +
			"summarize s verbose v json yaml",
	},
	"squeue": {
		flags: "account= A= all a array r array-unique clusters= M= cluster= expand-patterns federation format= o= Format= " +
			"O= hide iterate= i= jobs= j= json licenses= L= local long l me name= n= noconvert nodelist= w= noheader h notme " +
			"only-job-state partition= p= priority P qos= q= reservation= R= sibling sort= S= start states= t= steps= s= user= " +
			"u= users= verbose v yaml",
	},
	"scancel": {
		flags: "account= A= batch b clusters= M= cron ctld full f hurry H interactive i jobname= n= name= me nodelist= w= " +
			"partition= p= qos= q= quiet Q reservation= R= sibling= signal= s= state= t= user= u= verbose v wckey=",
	},
	"sacct": {
		flags: "accounts= A= allclusters L allusers a allocations X array brief b clusters= M= completion c delimiter= " +
			"duplicates D endtime= E= env-vars batch-script B expand-patterns federation format= o= helpformat e jobs= j= json " +
			"local long l name= ncpus= nnodes= nodelist= N= noconvert noheader n parsable p parsable2 P partition= r= qos= q= " +
			"starttime= S= state= s= truncate T uid= u= user= units= verbose v whole-hetjob wckeys= W= yaml",
	},
	"sacctmgr": {
		flags: "associations s immediate i noheader n oneliner o parsable p parsable2 P quiet Q readonly r json yaml verbose v",
		words: map[string]string{
			"show": entities + conditions, "list": entities + conditions, "add": entities + conditions,
			"create": entities + conditions, "modify": entities + conditions, "delete": entities + conditions,
			"remove": entities + conditions, "dump": "", "load": "", "ping": "", "reconfigure": "", "archive": "",
			"shutdown": "", "version": "",
		},
	},
	"sdiag":  {flags: "all a cluster= M= reset r sort-by-id i sort-by-time t sort-by-time2 T json yaml"},
	"sprio":  {flags: "clusters= M= format= o= Format= O= jobs= j= long l noheader h norm n partition= p= sort= S= user= u= weights w"},
	"sshare": {flags: "accounts= A= all a format= o= long l clusters= M= noheader n parsable p parsable2 P users= u= Users U partition m"},
	"srun":   {flags: jobOptions, takesCommand: true},
	"sbatch": {flags: jobOptions, takesCommand: true},
	"salloc": {flags: jobOptions, takesCommand: true},
}
