{{/* The name of the operator's Deployment, and the prefix of all other names. */}}
{{- define "slurm-operator.fullname" -}}
{{- $name := .Values.nameOverride | default .Chart.Name -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "slurm-operator.namespace" -}}
{{ .Values.namespaceOverride | default .Release.Namespace }}
{{- end -}}

{{/* The name of the webhook's Deployment, Service, webhook configurations and other objects. */}}
{{- define "slurm-operator.webhook" -}}
{{ include "slurm-operator.fullname" . }}-webhook
{{- end -}}

{{- define "slurm-operator.image" -}}
{{- $tag := printf ":%s" (.Values.image.tag | default .Chart.AppVersion) -}}
{{ .Values.image.repository }}{{ empty .Values.image.digest | ternary $tag (printf "@%s" .Values.image.digest) }}
{{- end -}}

{{/* The name of a component's ServiceAccount. Arguments: context, component. */}}
{{- define "slurm-operator.serviceAccount" -}}
{{- $context := index . 0 -}}
{{- with (index $context.Values (index . 1)).serviceAccount -}}
{{- $own := eq (index $ 1) "webhook" | ternary "slurm-operator.webhook" "slurm-operator.fullname" -}}
{{ .name | default (ternary (include $own $context) "default" .create) }}
{{- end -}}
{{- end -}}

{{/* A mapping with some of its keys replaced, as YAML. Arguments: the mapping as YAML, the replaced keys. */}}
{{- define "slurm-operator.overlay" -}}
{{- $result := index . 0 | fromYaml -}}
{{- range $key, $value := index . 1 }}{{ $_ := set $result $key $value }}{{ end -}}
{{ toYaml $result }}
{{- end -}}

{{/* The port on which a component serves metrics; 0 if it does not. Arguments: context, component. */}}
{{- define "slurm-operator.metricsPort" -}}
{{- $context := index . 0 -}}
{{- ternary (index $context.Values (index . 1)).metricsPort 0 $context.Values.metrics.enabled -}}
{{- end -}}

{{/* Annotations of a component's pods: the user's, and those by which scrapers find them. Arguments: context, component. */}}
{{- define "slurm-operator.podAnnotations" -}}
{{- $context := index . 0 -}}
{{- $port := include "slurm-operator.metricsPort" . -}}
{{- $scrape := dict -}}
{{- if and $context.Values.metrics.scrapeAnnotations (ne $port "0") -}}
{{- $scrape = dict "prometheus.io/scrape" "true" "prometheus.io/port" $port "prometheus.io/path" "/metrics" -}}
{{- end -}}
{{- with merge (dict) (index $context.Values (index . 1)).podAnnotations $scrape -}}
{{- toYaml . -}}
{{- end -}}
{{- end -}}

{{/* Labels that select the pods of a component (operator, webhook). Arguments: context, component. */}}
{{- define "slurm-operator.selector" -}}
{{- $context := index . 0 -}}
app.kubernetes.io/name: slurm-operator
app.kubernetes.io/instance: {{ $context.Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end -}}

{{/* Labels of all objects of a component. Arguments: context, component. */}}
{{- define "slurm-operator.labels" -}}
{{- $context := index . 0 -}}
helm.sh/chart: {{ printf "%s-%s" $context.Chart.Name $context.Chart.Version | replace "+" "_" }}
{{ include "slurm-operator.selector" . }}
app.kubernetes.io/version: {{ $context.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ $context.Release.Service }}
{{- with $context.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* The common part of both components' pods. Arguments: context, component, which is also the key of its values. */}}
{{- define "slurm-operator.pod" -}}
{{- $context := index . 0 -}}
{{- $values := index $context.Values (index . 1) -}}
enableServiceLinks: false
securityContext:
  {{- $restricted := "runAsNonRoot: true\nseccompProfile: {type: RuntimeDefault}" }}
  {{- include "slurm-operator.overlay" (list $restricted $values.podSecurityContext) | nindent 2 }}
{{- with $context.Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
affinity:
{{- if $values.affinity }}
  {{- toYaml $values.affinity | nindent 2 }}
{{- else }}
  podAntiAffinity:
    preferredDuringSchedulingIgnoredDuringExecution:
      - weight: 100
        podAffinityTerm:
          topologyKey: kubernetes.io/hostname
          labelSelector:
            matchLabels:
              {{- include "slurm-operator.selector" . | nindent 14 }}
{{- end }}
{{- with $values.topologySpreadConstraints }}
topologySpreadConstraints:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.priorityClassName | default $context.Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
volumes:
  - name: log-levels
    configMap:
      name: {{ include "slurm-operator.fullname" $context }}-log-levels
{{- end -}}

{{/* The security context of every container. */}}
{{- define "slurm-operator.locked" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}

{{/* Arguments of both components for logging, health probes and metrics. Arguments: context, component. */}}
{{- define "slurm-operator.arguments" -}}
{{- $context := index . 0 -}}
{{- $port := include "slurm-operator.metricsPort" . -}}
- --log-format={{ $context.Values.log.format }}
- --log-levels=/etc/slurm-operator/log-levels
- --health-probe-bind-address=:{{ (index $context.Values (index . 1)).healthPort }}
- --metrics-bind-address={{ eq $port "0" | ternary $port (printf ":%s" $port) }}
- --metrics-insecure={{ not $context.Values.metrics.secure }}
{{- end -}}

{{/* Additional arguments of a component. Arguments: context, component. */}}
{{- define "slurm-operator.extraArgs" -}}
{{- with (index (index . 0).Values (index . 1)).extraArgs -}}
{{ toYaml . }}
{{- end -}}
{{- end -}}

{{/* Ports of both components for health probes and metrics. Arguments: context, component. */}}
{{- define "slurm-operator.ports" -}}
{{- $port := include "slurm-operator.metricsPort" . -}}
- name: health
  containerPort: {{ (index (index . 0).Values (index . 1)).healthPort }}
{{- if ne $port "0" }}
- name: metrics
  containerPort: {{ $port }}
{{- end }}
{{- end -}}

{{/* The common part of both components' containers. Arguments: context, component. */}}
{{- define "slurm-operator.container" -}}
{{- $context := index . 0 -}}
{{- $values := index $context.Values (index . 1) -}}
image: {{ include "slurm-operator.image" $context }}
imagePullPolicy: {{ $context.Values.image.pullPolicy }}
# Generous timeouts: restarts would only add load to a busy Kubernetes node.
livenessProbe:
  httpGet:
    path: /healthz
    port: health
  periodSeconds: 20
  timeoutSeconds: 10
readinessProbe:
  httpGet:
    path: /readyz
    port: health
  periodSeconds: 2
  timeoutSeconds: 5
securityContext:
  {{- include "slurm-operator.overlay" (list (include "slurm-operator.locked" $context) $values.securityContext) | nindent 2 }}
{{- with $values.resources }}
resources:
  {{- toYaml . | nindent 2 }}
{{- end }}
volumeMounts:
  - name: log-levels
    mountPath: /etc/slurm-operator/log-levels
    readOnly: true
{{- end -}}

{{/*
A Role of a component and its binding, or a ClusterRole if the namespace is empty; nothing if there are no rules.
Arguments: context, component, name of both objects, namespace, rules.
*/}}
{{- define "slurm-operator.role" -}}
{{- $context := index . 0 -}}
{{- $component := index . 1 -}}
{{- $name := index . 2 -}}
{{- $namespace := index . 3 -}}
{{- $rules := index . 4 | fromYamlArray -}}
{{- $scope := ternary "Cluster" "" (empty $namespace) -}}
{{- if and $rules $context.Values.rbac.create -}}
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ $scope }}Role
metadata:
  name: {{ $name }}
  {{- with $namespace }}
  namespace: {{ . }}
  {{- end }}
  labels:
    {{- include "slurm-operator.labels" (list $context $component) | nindent 4 }}
rules:
  {{- toYaml $rules | nindent 2 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ $scope }}RoleBinding
metadata:
  name: {{ $name }}
  {{- with $namespace }}
  namespace: {{ . }}
  {{- end }}
  labels:
    {{- include "slurm-operator.labels" (list $context $component) | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: {{ $scope }}Role
  name: {{ $name }}
subjects:
  - kind: ServiceAccount
    name: {{ include "slurm-operator.serviceAccount" (list $context $component) }}
    namespace: {{ include "slurm-operator.namespace" $context }}
{{- end -}}
{{- end -}}

{{/*
The PodDisruptionBudget of a component with several replicas. Arguments: context, component, name.
*/}}
{{- define "slurm-operator.podDisruptionBudget" -}}
{{- $context := index . 0 -}}
{{- $values := index $context.Values (index . 1) -}}
{{- with $values.podDisruptionBudget -}}
{{- if and .enabled (gt (int $values.replicas) 1) -}}
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ index $ 2 }}
  namespace: {{ include "slurm-operator.namespace" $context }}
  labels:
    {{- include "slurm-operator.labels" $ | nindent 4 }}
spec:
  {{- if and .minAvailable (not .maxUnavailable) }}
  minAvailable: {{ .minAvailable }}
  {{- else }}
  maxUnavailable: {{ .maxUnavailable | default 1 }}
  {{- end }}
  selector:
    matchLabels:
      {{- include "slurm-operator.selector" $ | nindent 6 }}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* A component's ServiceAccount, unless it exists already. Arguments: context, component. */}}
{{- define "slurm-operator.serviceAccount.object" -}}
{{- $context := index . 0 -}}
{{- with (index $context.Values (index . 1)).serviceAccount -}}
{{- if .create -}}
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ include "slurm-operator.serviceAccount" $ }}
  namespace: {{ include "slurm-operator.namespace" $context }}
  labels:
    {{- include "slurm-operator.labels" $ | nindent 4 }}
  {{- with .annotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end -}}
{{- end -}}
{{- end -}}
