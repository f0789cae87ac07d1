{{- define "slurm.name" -}}
{{- $name := .Values.nameOverride | default .Release.Name -}}
{{- $full := contains $name .Release.Name | ternary .Release.Name (printf "%s-%s" .Release.Name $name) -}}
{{ .Values.fullnameOverride | default $full }}
{{- end -}}

{{- define "slurm.namespace" -}}
{{ .Values.namespaceOverride | default .Release.Namespace }}
{{- end -}}

{{- define "slurm.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/part-of: slurm
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/*
Merges one value over another, as YAML: mappings key by key, everything else as a whole. Helm's own functions treat
false and 0 as unset. Arguments: base, override.
*/}}
{{- define "slurm.merge" -}}
{{- $under := index . 0 -}}
{{- $over := index . 1 -}}
{{- $merged := deepCopy $under -}}
{{- range $key, $value := $over -}}
{{- if and (kindIs "map" $value) (kindIs "map" (get $under $key)) -}}
{{- $value = include "slurm.merge" (list (get $under $key) $value) | fromYaml -}}
{{- end -}}
{{- $_ := set $merged $key $value -}}
{{- end -}}
{{- toYaml $merged -}}
{{- end -}}

{{/*
A custom resource of the operator. Arguments: context, kind, name, its entry in the values, defaults for its spec, and
the daemon that each of its containers runs; empty for containers of other images.
*/}}
{{- define "slurm.object" -}}
{{- $context := index . 0 -}}
{{- $entry := index . 3 -}}
{{- $under := index . 4 -}}
{{- $containers := index . 5 -}}
{{- $values := $context.Values -}}
{{- if $containers -}}
{{- $pod := dict -}}
{{- with $values.imagePullSecrets }}{{ $_ := set $pod "imagePullSecrets" . }}{{ end -}}
{{- with $values.priorityClassName }}{{ $_ := set $pod "priorityClassName" . }}{{ end -}}
{{- with $pod }}{{ $_ := set $under "template" (dict "spec" .) }}{{ end -}}
{{- end -}}
{{- range $container, $daemon := $containers -}}
{{- $defaults := dict -}}
{{- with $values.imagePullPolicy }}{{ $_ := set $defaults "imagePullPolicy" . }}{{ end -}}
{{- if and $daemon $values.image.tag -}}
{{- $_ := set $defaults "image" (printf "%s/%s:%s" $values.image.repository $daemon $values.image.tag) -}}
{{- end -}}
{{- with $defaults }}{{ $_ := set $under $container . }}{{ end -}}
{{- end -}}
apiVersion: slinky.slurm.net/v1beta1
kind: {{ index . 1 }}
metadata:
  name: {{ index . 2 }}
  namespace: {{ include "slurm.namespace" $context }}
  labels:
    {{- merge dict (($entry.metadata).labels | default dict) (include "slurm.labels" $context | fromYaml) | toYaml | nindent 4 }}
  {{- with ($entry.metadata).annotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  {{- include "slurm.merge" (list $under (omit $entry "enabled" "metadata")) | nindent 2 }}
{{- end -}}

{{/* References to the cluster-wide keys. */}}
{{- define "slurm.keys" -}}
{{- with .Values.slurmKeyRef }}
slurmKeyRef:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.jwtKeyRef }}
jwtKeyRef:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* The name of the ConfigMap with the files of a value, such as prologScripts. Arguments: context, value name. */}}
{{- define "slurm.files" -}}
{{ include "slurm.name" (index . 0) }}-{{ index . 1 | kebabcase }}
{{- end -}}

{{/* The name of the MariaDB. */}}
{{- define "slurm.mariadb" -}}
{{ include "slurm.name" . }}-mariadb
{{- end -}}

{{/* The Secret and key with the password of Slurm's user in the MariaDB. */}}
{{- define "slurm.mariadb.password" -}}
{{- .Values.mariadb.passwordKeyRef | default (dict "name" (include "slurm.mariadb" .) "key" "password") | toYaml -}}
{{- end -}}

{{/*
An entry of the values with the shared volumes and the users' files mounted in a container, as YAML. Volumes and mounts
that the entry has itself take precedence. Arguments: context, entry, container, whether to mount the shared volumes.
*/}}
{{- define "slurm.mounted" -}}
{{- $context := index . 0 -}}
{{- $entry := deepCopy (index . 1) -}}
{{- $container := index . 2 -}}
{{- $template := $entry.template | default dict -}}
{{- $pod := $template.spec | default dict -}}
{{- $daemon := get $entry $container | default dict -}}
{{- $volumes := list -}}
{{- $mounts := list -}}
{{- if index . 3 -}}
{{- range $name, $shared := $context.Values.sharedVolumes -}}
{{- $source := $shared.volume | default (dict "persistentVolumeClaim" (dict "claimName" (include "slurm.claim" (list $context $name)))) -}}
{{- $volumes = append $volumes (merge (dict "name" $name) $source) -}}
{{- $mounts = append $mounts (merge (dict "name" $name) (omit $shared "claim" "volume")) -}}
{{- end -}}
{{- end -}}
{{- if $context.Values.users -}}
{{- $volumes = append $volumes (dict "name" "users" "configMap" (dict "name" (include "slurm.users" $context))) -}}
{{- $mounts = append $mounts (dict "name" "users" "mountPath" "/var/lib/extrausers" "readOnly" true) -}}
{{- end -}}
{{- $own := list -}}
{{- range $pod.volumes -}}{{- $own = append $own .name -}}{{- end -}}
{{- range $volumes -}}
{{- if not (has .name $own) -}}{{- $_ := set $pod "volumes" (append ($pod.volumes | default list) .) -}}{{- end -}}
{{- end -}}
{{- $own = list -}}
{{- range $daemon.volumeMounts -}}{{- $own = append $own .mountPath -}}{{- end -}}
{{- range $mounts -}}
{{- if not (has .mountPath $own) -}}{{- $_ := set $daemon "volumeMounts" (append ($daemon.volumeMounts | default list) .) -}}{{- end -}}
{{- end -}}
{{- if $mounts -}}
{{- $_ := set $template "spec" $pod -}}
{{- $_ := set $entry "template" $template -}}
{{- $_ := set $entry $container $daemon -}}
{{- end -}}
{{- toYaml $entry -}}
{{- end -}}

{{/* The name of the PersistentVolumeClaim of a shared volume. Arguments: context, volume name. */}}
{{- define "slurm.claim" -}}
{{ include "slurm.name" (index . 0) }}-{{ index . 1 }}
{{- end -}}

{{/* The name of the ConfigMap with the users' files. */}}
{{- define "slurm.users" -}}
{{ include "slurm.name" . }}-users
{{- end -}}

{{/* The name of the Secret with sssd.conf. */}}
{{- define "slurm.sssd" -}}
{{ include "slurm.name" . }}-sssd
{{- end -}}

{{/*
The settings of an sshd that give it the users' keys and sssd.conf, as YAML: extraSshdConfig and sssdConfRef. Arguments:
context, the entry's own settings.
*/}}
{{- define "slurm.sshd" -}}
{{- $context := index . 0 -}}
{{- $own := index . 1 -}}
{{- $settings := dict -}}
{{- $sssd := $context.Values.sssd -}}
{{- if and (or $sssd.secretRef $sssd.config $sssd.conf) (not (hasKey $own "sssdConfRef")) -}}
{{- $stored := dict "name" (include "slurm.sssd" $context) "key" "sssd.conf" -}}
{{- $_ := set $settings "sssdConfRef" ($sssd.secretRef | default $stored) -}}
{{- end -}}
{{- $commands := list -}}
{{- if $context.Values.users }}{{ $commands = append $commands "cat \"/var/lib/extrausers/$0.keys\"" }}{{ end -}}
{{- if $settings.sssdConfRef }}{{ $commands = append $commands "sss_ssh_authorizedkeys \"$0\"" }}{{ end -}}
{{- $config := $own.extraSshdConfig | default "" -}}
{{- if and $commands (not (contains "AuthorizedKeysCommand" $config)) -}}
{{- /* The name is an argument, so that the shell does not interpret it. sshd ignores keys if the command fails. */ -}}
{{- $line := printf "AuthorizedKeysCommand /bin/sh -c '(%s) 2>/dev/null; true' %%u" (join "; " $commands) -}}
{{- $_ := set $settings "extraSshdConfig" (printf "%s\nAuthorizedKeysCommandUser nobody\n%s" $line $config) -}}
{{- end -}}
{{- toYaml $settings -}}
{{- end -}}
