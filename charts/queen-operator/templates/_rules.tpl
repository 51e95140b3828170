{{/*
The rights in a namespace that holds QueenClusters.
docs/security.md gives the reason for each line, and a test compares the two.
*/}}
{{- define "queen-operator.namespaceRules" -}}
- apiGroups: ["queen-operator.dev"]
  resources: ["queenclusters"]
  verbs: ["list", "patch", "watch"]
- apiGroups: ["queen-operator.dev"]
  resources: ["queenclusters/status"]
  verbs: ["update"]
- apiGroups: ["queen-operator.dev"]
  resources: ["queenclusters/finalizers"]
  verbs: ["update"]
- apiGroups: ["apps"]
  resources: ["deployments"]
  verbs: ["create", "delete", "get", "list", "patch", "watch"]
- apiGroups: [""]
  resources: ["services"]
  verbs: ["create", "delete", "get", "list", "patch", "watch"]
- apiGroups: [""]
  resources: ["persistentvolumeclaims"]
  verbs: ["create", "delete", "get", "list", "patch", "watch"]
- apiGroups: [""]
  resources: ["serviceaccounts"]
  verbs: ["create", "get", "list", "patch", "watch"]
- apiGroups: ["policy"]
  resources: ["poddisruptionbudgets"]
  verbs: ["create", "delete", "get", "list", "patch", "watch"]
- apiGroups: [""]
  resources: ["pods"]
  verbs: ["create", "delete", "list", "patch", "watch"]
- apiGroups: [""]
  resources: ["secrets"]
  verbs: ["create", "get", "list", "patch", "watch"]
- apiGroups: [""]
  resources: ["events"]
  verbs: ["create"]
{{- end -}}

{{/* The subject of every binding. */}}
{{- define "queen-operator.subjects" -}}
- kind: ServiceAccount
  name: {{ include "queen-operator.serviceAccountName" . | quote }}
  namespace: {{ .Release.Namespace | quote }}
{{- end -}}
