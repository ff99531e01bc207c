# bash completion for tributary, tributaryd, tributary-archiver,
# tributary-relay, tributary-probes, tributary-upload,
# tributary-web.
#
# Flags are those that a program's own --help names, so they are never behind.
# Names of sessions, recordings, machines and sources are asked of the collector, for
# a second at most and never through ssh, which might want a password.

# The flags in the help of a program and command: tributary record
_tributary_flags()
{
	"$@" --help 2>/dev/null </dev/null |
	    sed -n -e 's/^  *-/-/p' -e 's/^.*[Uu]sage: //p' |
	    grep -oE -- '(^|[][ ,|(])--?[A-Za-z][A-Za-z0-9._-]*' |
	    sed -e 's/^[][ ,|(]*//' -e 's/[.]$//' | sort -u
}

# Whether a flag (the first word) takes a value in the help of the others.
_tributary_takes_value()
{
	local flag=$1
	shift
	"$@" --help 2>/dev/null </dev/null | sed -n 's/^  *-/-/p' |
	    grep -qE -- "(^|[ ,])$flag(, --[a-zA-Z-]+)?[ =][A-Z]"
}

# Which collector the line so far means: fills _tributary_where.
_tributary_address()
{
	local i
	_tributary_where=()
	for ((i = 2; i < COMP_CWORD; i++)); do
		case ${COMP_WORDS[i]} in
		--sni-machine)
			_tributary_where+=("${COMP_WORDS[i]}") ;;
		--connect | --tls-dir | --tls-name)
			# Addresses come in pieces: tls : //host : 7000
			local flag=${COMP_WORDS[i]} value=
			[[ ${COMP_WORDS[i + 1]} == "=" ]] && ((i++))
			((i++))
			value=${COMP_WORDS[i]-}
			while ((i + 1 < COMP_CWORD)) &&
			    [[ ${COMP_WORDS[i]} == *: ||
			    ${COMP_WORDS[i + 1]} == :* ]]; do
				((i++))
				value+=${COMP_WORDS[i]}
			done
			_tributary_where+=("$flag" "${value/#\~/$HOME}")
			;;
		esac
	done
}

# What the collector says to "sessions", "recordings", "machines" or "sources".
_tributary_ask()
{
	local _tributary_where
	_tributary_address
	[[ " ${_tributary_where[*]-} " == *" ssh:"* ]] && return
	timeout 1 "${COMP_WORDS[0]}" "$1" --json \
	    ${_tributary_where[@]+"${_tributary_where[@]}"} \
	    2>/dev/null </dev/null
}

_tributary_recordings()
{
	_tributary_ask recordings |
	    sed -n 's/^  {"name": "\([A-Za-z0-9._-]*\)".*/\1/p'
}

# Names that a shell takes as they are; others have to be typed.
_tributary_sessions()
{
	_tributary_ask sessions |
	    sed -n -e 's/^  {"id": \([0-9]*\), "name": "\([A-Za-z0-9._+@-]*\)".*/\1 \2/p' \
	    -e 't' -e 's/^  {"id": \([0-9]*\),.*/\1/p'
}

_tributary_machines()
{
	_tributary_ask machines |
	    sed -n 's/^  {"id": [0-9]*, "name": "\([A-Za-z0-9._+@-]*\)".*/\1/p'
}

_tributary_sources()
{
	_tributary_ask sources |
	    sed -n 's/^  {"name": "\([A-Za-z0-9._+@-]*\)".*/\1/p' | sort -u
}

_tributary_words()
{
	local word
	while read -r word; do
		COMPREPLY+=("$word")
	done < <(compgen -W "$1" -- "$2")
}

_tributary_files()
{
	local name
	compopt -o filenames 2>/dev/null
	while IFS= read -r name; do
		COMPREPLY+=("$name")
	done < <(compgen "$1" -- "$2")
}

# The value of a flag: flag, what is typed of it.
_tributary_value()
{
	case $1 in
	--config | -c | --out | --output | -o | --socket | \
	    --https-cert | --https-key | --client-ca | --client-crl | --token-file | \
	    --health-ca | --fleet)
		_tributary_files -f "$2" ;;
	--archive | --tls-dir | --trace-dir | --spool-dir | --state-dir)
		_tributary_files -d "$2" ;;
	--machine | --into-machine)
		_tributary_words "$(_tributary_machines)" "$2" ;;
	--connect | --to | --producer-socket | --consumer-socket | --listen)
		_tributary_words 'unix: tls:// ssh:// vsock://' "$2"
		_tributary_files -f "$2" ;;
	--clone | --clone-by-name)
		_tributary_words "$(_tributary_sessions)" "$2" ;;
	--log-level)
		_tributary_words 'debug info warn error' "$2" ;;
	--role)
		_tributary_words 'producer relay consumer admin' "$2" ;;
	--reason)
		_tributary_words 'unspecified key-compromise
		    affiliation-changed superseded cessation' "$2" ;;
	--convert)
		_tributary_words 'BOOTTIME: MONOTONIC: MONOTONIC_RAW:
		    REALTIME:' "$2"
		compopt -o nospace 2>/dev/null ;;
	--into)
		_tributary_words 'BOOTTIME MONOTONIC MONOTONIC_RAW
		    REALTIME' "$2" ;;
	--type)
		_tributary_words 'clock_snapshot ftrace_events
		    process_descriptor process_stats process_tree
		    remote_clock_sync service_event sys_stats system_info
		    thread_descriptor trace_config trace_packet_defaults
		    trace_stats track_descriptor track_event trigger' "$2" ;;
	esac
}

# What a command of tributary takes besides flags.
_tributary_argument()
{
	case $1 in
	sessions | stats | stop | flush | rotate | start | snapshot)
		_tributary_words "$(_tributary_sessions)" "$2" ;;
	machines)
		_tributary_words "$(_tributary_machines)" "$2" ;;
	recordings)
		if ((COMP_CWORD == 2)); then
			_tributary_words 'start stop rotate' "$2"
		else
			_tributary_words "$(_tributary_recordings)" "$2"
		fi ;;
	record | sources)
		_tributary_words "$(_tributary_sources)" "$2" ;;
	inspect | find | fetch | open)
		_tributary_files -f "$2" ;;
	archive)
		if ((COMP_CWORD == 2)); then
			_tributary_words 'reindex verify du pin unpin rm' "$2"
		else
			_tributary_files -f "$2"
		fi ;;
	fleet)
		if ((COMP_CWORD == 2)); then
			_tributary_words 'haproxy triggers' "$2"
		fi ;;
	cert)
		if ((COMP_CWORD == 2)); then
			_tributary_words 'init issue show renew revoke' "$2"
		else
			_tributary_files -f "$2"
		fi ;;
	esac
}

_tributary()
{
	local cur=${COMP_WORDS[COMP_CWORD]-} prev=${COMP_WORDS[COMP_CWORD-1]-}
	local command=("${COMP_WORDS[0]}")
	COMPREPLY=()
	# --flag=value comes as three words.
	if [[ $cur == "=" ]]; then
		cur=
	elif [[ $prev == "=" ]]; then
		prev=${COMP_WORDS[COMP_CWORD-2]}
	fi
	if [[ ${COMP_WORDS[0]##*/} == tributary ]]; then
		if ((COMP_CWORD == 1)); then
			_tributary_words "--help --version
			    $("${COMP_WORDS[0]}" --help 2>/dev/null </dev/null |
			    sed -n '/^Commands:/,/^$/s/^  \([a-z]*\) .*/\1/p')" \
			    "$cur"
			return
		fi
		command+=("${COMP_WORDS[1]}")
	fi
	if [[ $prev == -* ]] &&
	    _tributary_takes_value "$prev" "${command[@]}"; then
		_tributary_value "$prev" "$cur"
	elif [[ $cur == -* ]]; then
		_tributary_words "$(_tributary_flags "${command[@]}")" "$cur"
	elif ((${#command[@]} == 2)); then
		_tributary_argument "${command[1]}" "$cur"
	fi
}

complete -F _tributary tributary tributaryd tributary-archiver \
    tributary-relay tributary-probes tributary-upload tributary-web
