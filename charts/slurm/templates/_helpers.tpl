{{- define "slurm.name" -}}
{{ .Values.fullnameOverride | default .Release.Name }}
{{- end -}}

{{- define "slurm.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/part-of: slurm
app.kubernetes.io/managed-by: {{ .Release.Service }}
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
the daemon that each of its containers runs.
*/}}
{{- define "slurm.object" -}}
{{- $context := index . 0 -}}
{{- $entry := index . 3 -}}
{{- $under := index . 4 -}}
{{- $containers := index . 5 -}}
{{- if and $containers $context.Values.imagePullSecrets -}}
{{- $_ := set $under "template" (dict "spec" (dict "imagePullSecrets" $context.Values.imagePullSecrets)) -}}
{{- end -}}
{{- with $context.Values.image -}}
{{- if .tag -}}
{{- range $container, $daemon := $containers -}}
{{- $_ := set $under $container (dict "image" (printf "%s/%s:%s" $context.Values.image.repository $daemon $context.Values.image.tag)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
apiVersion: slinky.slurm.net/v1beta1
kind: {{ index . 1 }}
metadata:
  name: {{ index . 2 }}
  namespace: {{ $context.Release.Namespace }}
  labels:
    {{- include "slurm.labels" $context | nindent 4 }}
    {{- with ($entry.metadata).labels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
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
