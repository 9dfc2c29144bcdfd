# Read by scripts that fetch packages of Debian without installing them.
#
# apt_apart DIRECTORY ARCHITECTURE MIRROR KEYS SUITE…: all that apt keeps goes into this directory, so
# that nothing mixes into this system, and the lists of these suites are fetched. From then on apt-get
# of this script is about these; what it downloads lies in DIRECTORY/cache/archives. The status is
# that of the lists: not 0 where they do not come.
apt_apart() {
    root=$1 architecture=$2 mirror_of=$3 keys_of=$4
    shift 4
    mkdir -p "$root/state/lists/partial" "$root/cache/archives/partial" "$root/etc/parts"
    : >"$root/status"
    for suite_of in "$@"; do
        echo "deb [arch=$architecture signed-by=$keys_of] $mirror_of $suite_of main"
    done >"$root/etc/sources.list"
    cat >"$root/apt.conf" <<CONF
Dir::State "$root/state";
Dir::State::status "$root/status";
Dir::Cache "$root/cache";
Dir::Etc "$root/etc";
Dir::Etc::parts "$root/etc/parts";
Dir::Etc::sourcelist "$root/etc/sources.list";
Dir::Etc::sourceparts "$root/etc/parts";
Dir::Etc::preferencesparts "$root/etc/parts";
Dir::Etc::trustedparts "$root/etc/parts";
APT::Architecture "$architecture";
APT::Architectures { "$architecture"; };
APT::Install-Recommends "false";
APT::Sandbox::User "root";
Acquire::Languages "none";
Acquire::Retries "3";
CONF
    APT_CONFIG="$root/apt.conf"
    export APT_CONFIG
    apt-get -qq update
}
