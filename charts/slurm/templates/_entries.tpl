{{/*
An entry of the values in the words of the API, as YAML: podSpec becomes template.spec, metadata is also that of the
pods, the parts of an image become one string, and maps of Slurm settings become text. Arguments: context, entry, the
daemon that each of its containers runs, separator of Slurm settings.
*/}}
{{- define "slurm.entry" -}}
{{- $context := index . 0 -}}
{{- $given := index . 1 -}}
{{- $entry := omit (deepCopy $given) "podSpec" "extraConfMap" -}}
{{- $template := dict -}}
{{- with $given.podSpec }}{{ $_ := set $template "spec" . }}{{ end -}}
{{- with $given.metadata }}{{ $_ := set $template "metadata" . }}{{ end -}}
{{- $template = include "slurm.merge" (list $template ($given.template | default dict)) | fromYaml -}}
{{- with ($template.spec).imagePullSecrets -}}
{{- $_ := set $template.spec "imagePullSecrets" (concat . $context.Values.imagePullSecrets | uniq) -}}
{{- end -}}
{{- with $template }}{{ $_ := set $entry "template" . }}{{ end -}}
{{- range $container, $daemon := index . 2 -}}
{{- $image := (get $entry $container | default dict).image -}}
{{- if kindIs "map" $image -}}
{{- $_ := set (get $entry $container) "image" (include "slurm.image" (list $context ($daemon | default $container) $image)) -}}
{{- end -}}
{{- end -}}
{{- if and $given.extraConfMap (not $given.extraConf) -}}
{{- $_ := set $entry "extraConf" (include "slurm.settings" (list $given.extraConfMap (index . 3))) -}}
{{- end -}}
{{- with $given.partition -}}
{{- $_ := set $entry "partition" (omit . "configMap") -}}
{{- if and .configMap (not .config) -}}
{{- $_ := set $entry.partition "config" (include "slurm.settings" (list .configMap " ")) -}}
{{- end -}}
{{- end -}}
{{- toYaml $entry -}}
{{- end -}}

{{/* An image that is given as repository, tag and digest. Arguments: context, daemon, the image. */}}
{{- define "slurm.image" -}}
{{- $values := (index . 0).Values -}}
{{- with index . 2 -}}
{{- $tag := .tag | default $values.image.tag -}}
{{- if not (or .digest $tag) }}{{ fail (printf "the image of %s has neither a tag nor a digest" (index $ 1)) }}{{ end -}}
{{- $version := empty .digest | ternary (printf ":%s" $tag) (printf "@%s" .digest) -}}
{{ .repository | default (printf "%s/%s" $values.image.repository (index $ 1)) }}{{ $version }}
{{- end -}}
{{- end -}}

{{/*
A map of Slurm settings as text: lists are joined with commas, and booleans are YES and NO. Arguments: the map, the
separator of settings.
*/}}
{{- define "slurm.settings" -}}
{{- $settings := list -}}
{{- range $name, $value := index . 0 -}}
{{- $words := list -}}
{{- range ternary $value (list $value) (kindIs "slice" $value) -}}
{{- if kindIs "bool" . }}{{ $words = append $words (ternary "YES" "NO" .) }}
{{- else if kindIs "string" . }}{{ $words = append $words . }}
{{- else }}{{ $words = append $words (toJson .) }}{{ end -}}
{{- end -}}
{{- with join "," $words }}{{ $settings = append $settings (printf "%s=%s" $name .) }}{{ end -}}
{{- end -}}
{{- join (index . 1) $settings -}}
{{- end -}}
