# For scripts that need more of the machine than Go: they read this file with ".".

say() { printf '== %s\n' "$*"; }
fail() {
	printf '%s: %s\n' "$0" "$*" >&2
	exit 1
}

# have COMMAND, or have python3:MODULE for a module of the system's own Python.
have() {
	case $1 in
	python3:*) /usr/bin/python3 -c "import ${1#python3:}" >/dev/null 2>&1 ;;
	*) command -v "$1" >/dev/null 2>&1 || [ -x "/usr/sbin/$1" ] ;;
	esac
}

# install COMMAND PACKAGE... installs the packages if the command, or python3:MODULE, is missing.
updated=
install() {
	local command=$1 as_root=()
	shift
	have "$command" && return
	if [ "$(id -u)" -ne 0 ]; then
		have sudo && sudo -n true 2>/dev/null || fail "$command is missing: install the packages $*"
		as_root=(sudo -n)
	fi
	have apt-get || fail "$command is missing: install the packages $* by the means of this system"
	say "installing $*"
	if [ -z "$updated" ]; then
		"${as_root[@]}" apt-get update -qq >/dev/null || fail "apt-get update fails; install the packages $*"
		updated=yes
	fi
	"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null ||
		fail "apt-get cannot install $*; install them by hand"
	have "$command" || fail "$command is still missing after installing $*"
}
