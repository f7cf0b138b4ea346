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

# update_packages updates apt-get's lists, for COMMAND of the packages PACKAGE...
# It sets as_root to the prefix that runs a command as root.
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

oldest_node=20 # its major version

# need_go sets the build flags of tests: no profile and no C, which take minutes, and no paths, so
# that clones share Go's cache. Without -buildvcs=false, building fails in a clone of another user's.
need_go() {
	have go || fail "Go is missing: install $(sed -n 's/^go //p' go.mod) or newer, from https://go.dev/dl/"
	go env GOVERSION >/dev/null || fail "this Go cannot build the module; go.mod asks for $(sed -n 's/^go //p' go.mod)"
	say "$(go version)"
	export GOFLAGS="${GOFLAGS:+$GOFLAGS }-buildvcs=false -pgo=off -trimpath"
	export CGO_ENABLED="${CGO_ENABLED:-0}"
}

need_node() {
	have node && have npm || fail "Node and npm are missing: install Node $oldest_node or newer (Debian, Ubuntu: apt-get install nodejs npm)"
	local version
	version=$(node --version)
	version=${version#v}
	[ "${version%%.*}" -ge "$oldest_node" ] || fail "Node $version is too old: install Node $oldest_node or newer"
	say "Node $version"
}

# npm_packages installs the packages of a folder when its lock file is not the one they came from.
npm_packages() {
	local folder=$1 stamp="$1/node_modules/.lock.sha256" sum
	sum=$(sha256sum <"$folder/package-lock.json")
	[ -f "$stamp" ] && [ "$(cat "$stamp")" = "$sum" ] && return
	say "installing the npm packages of $folder"
	npm ci --ignore-scripts --prefix "$folder" --no-audit --no-fund --loglevel=error ||
		fail "npm ci fails in $folder; it needs the npm registry, or the folder $folder/node_modules"
	mkdir -p "$folder/node_modules" && printf '%s\n' "$sum" >"$stamp"
}
