{{- define "conclave.name" -}}
{{- if contains "conclave" .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{ else }}{{ printf "%s-conclave" .Release.Name | trunc 50 | trimSuffix "-" }}{{ end -}}
{{- end }}

{{/* Called with a list of the root and the part: server, coturn or prometheus. */}}
{{- define "conclave.selector" -}}
app.kubernetes.io/name: conclave
app.kubernetes.io/instance: {{ (index . 0).Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end }}

{{- define "conclave.labels" -}}
{{ include "conclave.selector" . }}
app.kubernetes.io/version: {{ (index . 0).Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ (index . 0).Release.Service }}
helm.sh/chart: {{ printf "%s-%s" (index . 0).Chart.Name (index . 0).Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "conclave.turnSecret" -}}
{{ .Values.coturn.existingSecret | default (printf "%s-turn" (include "conclave.name" .)) }}
{{- end }}

{{/* The address of the port for metrics; empty: all. */}}
{{- define "conclave.metricsAddress" -}}
{{- .Values.metricsAddress | default .Values.listenAddress }}
{{- end }}

{{/* The address for the kubelet's probes: the pod's, unless the listener has a specific one, other than 0.0.0.0 and ::. */}}
{{- define "conclave.probe" -}}
{{- $address := include "conclave.metricsAddress" (index . 0) -}}
httpGet: {path: {{ index . 1 }}, port: metrics{{ if regexMatch "[1-9a-fA-F]" $address }}, host: {{ $address | quote }}{{ end }}}
{{- end }}

{{/* The server's configuration: the chart's members, then those of `config`. */}}
{{- define "conclave.config" -}}
{{- $ports := .Values.ports -}}
{{- $listen := dict "stomp" nil -}}
{{- range $name, $address := dict "http" .Values.listenAddress "stompTLS" .Values.listenAddress "metrics" (include "conclave.metricsAddress" .) -}}
{{- $port := get $ports $name -}}
{{- if $address -}}
{{- $port = printf (ternary "[%s]:%v" "%s:%v" (contains ":" $address)) $address $port -}}
{{- end -}}
{{- $_ := set $listen $name $port -}}
{{- end -}}
{{- $media := dict "port" $ports.media "workers" .Values.workers -}}
{{- $config := dict "state" "/var/lib/conclave/state" "drain" .Values.drain "listen" $listen "media" $media -}}
{{- if .Values.tls.secret -}}
{{- $_ := set $config "tls" (dict "certificate" "/run/conclave/tls/tls.crt" "key" "/run/conclave/tls/tls.key") -}}
{{- end -}}
{{- if .Values.coturn.enabled -}}
{{- $place := printf "turn:%s:%v?transport=" .Values.coturn.host .Values.coturn.port -}}
{{- $urls := list (print $place "udp") (print $place "tcp") -}}
{{- if .Values.coturn.tls.secret -}}
{{- $urls = append $urls (printf "turns:%s:%v?transport=tcp" .Values.coturn.host .Values.coturn.tls.announcedPort) -}}
{{- end -}}
{{- $_ := set $config "turn" (dict "urls" $urls "secretFile" "/run/conclave/turn/secret") -}}
{{- end -}}
{{- range $name, $value := .Values.config -}}
{{- $made := get $config $name -}}
{{- if and (kindIs "map" $value) (kindIs "map" $made) -}}
{{- /* Not `merge`, which drops nulls. */ -}}
{{- range $member, $of := $value -}}
{{- $_ := set $made $member $of -}}
{{- end -}}
{{- else -}}
{{- $_ := set $config $name $value -}}
{{- end -}}
{{- end -}}
{{- toPrettyJson $config -}}
{{- end }}

{{/* Hardened like the .deb's unit. */}}
{{- define "conclave.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}
