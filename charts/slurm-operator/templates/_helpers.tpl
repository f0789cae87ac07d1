{{/* The name of the operator's Deployment, and the prefix of all other names. */}}
{{- define "slurm-operator.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- else if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* The name of the webhook's Deployment, Service, webhook configurations and other objects. */}}
{{- define "slurm-operator.webhook" -}}
{{ include "slurm-operator.fullname" . }}-webhook
{{- end -}}

{{- define "slurm-operator.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
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
{{- end -}}

{{/* The common part of both components' pods. Arguments: context, component, which is also the key of its values. */}}
{{- define "slurm-operator.pod" -}}
{{- $context := index . 0 -}}
{{- $values := index $context.Values (index . 1) -}}
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  seccompProfile:
    type: RuntimeDefault
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
{{- with $values.priorityClassName }}
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

{{/* Arguments of both components for logging, health probes and metrics. */}}
{{- define "slurm-operator.arguments" -}}
- --log-format={{ .Values.log.format }}
- --log-levels=/etc/slurm-operator/log-levels
- --health-probe-bind-address=:8081
- --metrics-bind-address={{ .Values.metrics.enabled | ternary ":8080" "0" }}
- --metrics-insecure={{ not .Values.metrics.secure }}
{{- end -}}

{{/* Ports of both components for health probes and metrics. */}}
{{- define "slurm-operator.ports" -}}
- name: health
  containerPort: 8081
{{- if .Values.metrics.enabled }}
- name: metrics
  containerPort: 8080
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
  {{- include "slurm-operator.locked" $context | nindent 2 }}
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
{{- if $rules -}}
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
    name: {{ eq $component "webhook" | ternary (include "slurm-operator.webhook" $context) (include "slurm-operator.fullname" $context) }}
    namespace: {{ $context.Release.Namespace }}
{{- end -}}
{{- end -}}
