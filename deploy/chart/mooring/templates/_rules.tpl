{{/*
What each role may do, and nothing more. A row of the table in xtask/tests/chart holds each of them to it, in both
directions. Statuses are written through their subresource; `patch` is server-side apply.

Three parts: "mooring.rules.<role>" in the whole cluster, "mooring.own.<role>" in the release's namespace, and what
several roles share.
*/}}

{{/* Events about objects of any namespace. */}}
{{- define "mooring.rules.events" -}}
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [create, patch]
{{- end -}}

{{/* With `manage: auto`, names of Deployments of other controllers. */}}
{{- define "mooring.rules.neighbours" -}}
{{- if eq .Values.manage "auto" -}}
- apiGroups: [apps]
  resources: [deployments]
  verbs: [list]
{{- end -}}
{{- end -}}

{{/* What is here besides us: installed schemas by name, and other controllers. */}}
{{- define "mooring.rules.others" -}}
- apiGroups: [apiextensions.k8s.io]
  resources: [customresourcedefinitions]
  verbs: [get]
{{ include "mooring.rules.neighbours" . }}
{{- end -}}

{{/* The book: leases and ledgers. */}}
{{- define "mooring.rules.book" -}}
- apiGroups: [mooring.dev]
  resources: [ipleases, prefixledgers]
  verbs: [get, list, watch, create, update, delete]
{{- end -}}

{{- define "mooring.rules.ipam" -}}
{{ include "mooring.rules.events" . }}
{{ include "mooring.rules.others" . }}
{{ include "mooring.rules.book" . }}
- apiGroups: [ipam.resource.nephio.org, ipam.nephio.org]
  resources: [networkinstances, ipprefixes, ipclaims, ipallocations]
  verbs: [get, list, watch]
- apiGroups: [ipam.resource.nephio.org, ipam.nephio.org]
  resources: [networkinstances/status, ipprefixes/status, ipclaims/status]
  verbs: [patch]
# They are made for claims and go with them; nobody deletes one.
- apiGroups: [ipam.resource.nephio.org, ipam.nephio.org]
  resources: [ipallocations]
  verbs: [create, patch]
- apiGroups: [vlan.resource.nephio.org]
  resources: [vlanindices, vlanclaims]
  verbs: [get, list, watch]
- apiGroups: [vlan.resource.nephio.org]
  resources: [vlanindices/status, vlanclaims/status]
  verbs: [patch]
{{- end -}}

{{- define "mooring.rules.packages" -}}
{{ include "mooring.rules.events" . }}
{{ include "mooring.rules.others" . }}
{{ include "mooring.rules.book" . }}
- apiGroups: [config.porch.kpt.dev]
  resources: [packagevariants, packagevariantsets, repositories]
  verbs: [get, list, watch]
# A set makes variants and removes them; a variant carries a finalizer.
- apiGroups: [config.porch.kpt.dev]
  resources: [packagevariants]
  verbs: [create, patch, delete]
- apiGroups: [config.porch.kpt.dev]
  resources: [packagevariants/status, packagevariantsets/status, repositories/status]
  verbs: [patch]
# Pools, and what is injected into packages.
- apiGroups: [ipam.resource.nephio.org, ipam.nephio.org]
  resources: [networkinstances, ipprefixes, ipclaims]
  verbs: [get, list, watch]
- apiGroups: [vlan.resource.nephio.org]
  resources: [vlanindices, vlanclaims]
  verbs: [get, list, watch]
- apiGroups: [infra.nephio.org]
  resources: [workloadclusters, networks, networkinstances]
  verbs: [get, list, watch]
- apiGroups: [ref.nephio.org]
  resources: [configs]
  verbs: [get, list, watch]
{{- with .Values.packages.injectedKinds }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "mooring.rules.sync" -}}
{{ include "mooring.rules.events" . }}
{{ include "mooring.rules.others" . }}
- apiGroups: [configsync.gke.io]
  resources: [rootsyncs]
  verbs: [get, list, watch]
- apiGroups: [configsync.gke.io]
  resources: [rootsyncs/status]
  verbs: [patch]
{{- end -}}

{{- define "mooring.rules.webhook" -}}
{{ include "mooring.rules.neighbours" . }}
- apiGroups: [ipam.resource.nephio.org, ipam.nephio.org]
  resources: [networkinstances, ipprefixes]
  verbs: [get, list, watch]
- apiGroups: [mooring.dev]
  resources: [ipleases, prefixledgers]
  verbs: [get, list, watch]
# Intents and what they are compared with; of Nodes the labels.
- apiGroups: [network.t-caas.telekom.com]
  resources:
    - bgpneighbors
    - bgppeerings
    - collectors
    - destinations
    - layer2attachments
    - layer2networkconfigurations
    - mirrorselectors
    - mirrortargets
    - podnetworks
    - trafficmirrors
    - vrfattachments
    - vrfrouteconfigurations
  verbs: [list, watch]
- apiGroups: [mooring.dev]
  resources: [operatorconfigs]
  verbs: [list, watch]
- apiGroups: [""]
  resources: [nodes]
  verbs: [list, watch]
{{- if eq .Values.webhook.certificate "self" }}
# Its own configuration, for the caBundle of the certificate it issued itself.
- apiGroups: [admissionregistration.k8s.io]
  resources: [validatingwebhookconfigurations]
  resourceNames: [{{ include "mooring.name" . }}-webhook]
  verbs: [get, patch]
{{- end }}
{{- end -}}

{{/* The Lease by which replicas of a role elect. Its name is the program's, not the release's. */}}
{{- define "mooring.own.lease" -}}
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  verbs: [create]
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  resourceNames: [moor-controller-{{ . }}]
  verbs: [get, update]
{{- end -}}

{{/* Journal, transactions and packages of the book; the inventory of a sync. */}}
{{- define "mooring.own.records" -}}
- apiGroups: [""]
  resources: [configmaps]
  verbs: [get, list, watch, create, update, patch, delete]
{{- end -}}

{{- define "mooring.own.ipam" -}}
{{ include "mooring.own.lease" "ipam" }}
{{ include "mooring.own.records" . }}
{{- end -}}

{{- define "mooring.own.packages" -}}
{{ include "mooring.own.lease" "packages" }}
{{ include "mooring.own.records" . }}
{{- end -}}

{{- define "mooring.own.sync" -}}
{{ include "mooring.own.lease" "sync" }}
{{ include "mooring.own.records" . }}
{{- end -}}

{{- define "mooring.own.webhook" -}}
- apiGroups: [""]
  resources: [configmaps]
  verbs: [get, list, watch]
{{- if eq .Values.webhook.certificate "self" }}
# The certificate that its replicas share. Its name is the program's, not the release's.
- apiGroups: [""]
  resources: [secrets]
  verbs: [create]
- apiGroups: [""]
  resources: [secrets]
  resourceNames: [mooring-webhook-certificate]
  verbs: [get, update]
{{- end }}
{{- end -}}
