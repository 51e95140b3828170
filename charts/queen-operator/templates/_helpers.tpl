{{/* Prefix of every object name, at most 52 characters: the longest suffix is "-metrics" and a name may have 63. */}}
{{- define "queen-operator.fullname" -}}
{{- $base := default .Chart.Name .Values.nameOverride -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 52 | trimSuffix "-" -}}
{{- else if contains $base .Release.Name -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $base | trunc 52 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* Prefix of cluster-scoped names: two releases of one name in two namespaces must not share a ClusterRole. */}}
{{- define "queen-operator.clusterScopedName" -}}
{{- printf "%s:%s" .Release.Namespace (include "queen-operator.fullname" .) -}}
{{- end -}}

{{/* What a Deployment selects by. Never add to it: a selector cannot be changed after the first install. */}}
{{- define "queen-operator.selectorLabels" -}}
app.kubernetes.io/name: {{ default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end -}}

{{/* Labels of every object. Ours are set last, so that extraLabels cannot break a selector. */}}
{{- define "queen-operator.labels" -}}
{{- $ours := include "queen-operator.selectorLabels" . | fromYaml -}}
{{- $chart := printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" -}}
{{- $ours = merge $ours (dict
      "app.kubernetes.io/version" (.Chart.AppVersion | replace "+" "_" | trunc 63)
      "app.kubernetes.io/managed-by" .Release.Service
      "app.kubernetes.io/part-of" "queen-operator"
      "helm.sh/chart" $chart) -}}
{{- merge $ours .Values.extraLabels | toYaml -}}
{{- end -}}

{{- define "queen-operator.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "queen-operator.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- required "serviceAccount.name: name the account to use, or set serviceAccount.create to true" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{/* The operator's image; the spool keeper of every broker pod is the same one. */}}
{{- define "queen-operator.image" -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) -}}
{{- end -}}
{{- end -}}

{{/*
extraEnv, after two checks. The API answers a name that is there twice with an error 500 that nobody understands, and
QUEEN_OPERATOR_NAMESPACES would watch what the roles of the chart do not reach.
*/}}
{{- define "queen-operator.extraEnv" -}}
{{- $taken := list -}}
{{- range .Values.extraEnv -}}
{{- if hasPrefix "QUEEN_OPERATOR_" .name -}}
{{- fail (printf "extraEnv: %s is the chart's own: use its values" .name) -}}
{{- end -}}
{{- if has .name $taken -}}
{{- fail (printf "extraEnv: %s is given twice" .name) -}}
{{- end -}}
{{- $taken = append $taken .name -}}
{{- end -}}
{{- with .Values.extraEnv -}}
{{- toYaml . -}}
{{- end -}}
{{- end -}}
