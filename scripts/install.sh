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

# update_packages makes apt-get known to what packages there are, for COMMAND of the packages PACKAGE...
# It sets as_root to what runs a command as root.
updated=
as_root=()
update_packages() {
	local command=$1
	shift
	if [ "$(id -u)" -ne 0 ]; then
		have sudo && sudo -n true 2>/dev/null || fail "$command is missing: install the packages $*"
		as_root=(sudo -n)
	fi
	have apt-get || fail "$command is missing: install the packages $* by the means of this system"
	[ -n "$updated" ] && return
	"${as_root[@]}" apt-get update -qq >/dev/null || fail "apt-get update fails; install the packages $*"
	updated=yes
}

# unpack COMMAND PACKAGE gets a command out of a package whose services this machine is not to run.
# The command comes into a folder of the user's, which is in PATH from here on.
unpacked=${XDG_CACHE_HOME:-$HOME/.cache}/exchange/bin
PATH=$PATH:$unpacked
unpack() {
	local command=$1 package=$2 folder
	have "$command" && return
	update_packages "$command" "$package"
	say "getting $command out of the package $package"
	folder=$(mktemp -d)
	(cd "$folder" && apt-get -o APT::Sandbox::User=root download -qq "$package" >/dev/null && dpkg-deb -x ./*.deb .) ||
		fail "apt-get cannot get $package; install $command by hand"
	mkdir -p "$unpacked"
	cp "$folder/usr/bin/$command" "$unpacked/"
	rm -rf "$folder"
	have "$command" || fail "$command is not in the package $package; install it by hand"
}

# install COMMAND PACKAGE... installs the packages if the command, or python3:MODULE, is missing.
install() {
	local command=$1
	shift
	have "$command" && return
	update_packages "$command" "$@"
	say "installing $*"
	"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null ||
		fail "apt-get cannot install $*; install them by hand"
	have "$command" || fail "$command is still missing after installing $*"
}
