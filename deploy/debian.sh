# Debian packages by purpose. Sourced by the scripts beside it.

build_packages="libssl-dev libnice-dev libjansson-dev libsqlite3-dev zlib1g-dev libcurl4-openssl-dev libpq-dev pkg-config openssl"
# Swift's tests compare our SRTP with libsrtp2, and start PostgreSQL servers of their own. Those in Python put PgBouncer in front of one.
swift_test_packages="libsrtp2-dev postgresql-15"
test_packages="$swift_test_packages chromium chromium-driver firefox-esr xvfb xauth nodejs node-typescript esbuild python3-venv python3-gi python3-gst-1.0 gir1.2-gst-plugins-bad-1.0
  gstreamer1.0-nice gstreamer1.0-plugins-bad gstreamer1.0-plugins-good gstreamer1.0-plugins-base fonts-dejavu-core coturn
  pgbouncer ruby-stomp libnet-stomp-perl php-cli php-stomp python3-stomper prometheus
  debootstrap systemd systemd-container umoci skopeo dpkg-dev nginx-light libnginx-mod-stream caddy certbot pebble docker-compose gnupg minisign binutils valgrind janus"

# For deploy/package.
package_packages="binutils dpkg-dev esbuild umoci skopeo python3 ca-certificates"

# One configuration for the server, the load test and all tests, so that each is built once.
swift_flags="-c release -Xswiftc -enable-testing"
# Eight tests run at a time. If all ran at once, each would get so little of a busy core that its time limit runs out.
test_flags="--skip-build --experimental-maximum-parallelization-width 8"

# without_starts COMMAND...: runs it while no package may start its service (policy-rc.d), so that the tests bring no web server to a developer's machine.
without_starts() (
  policy=/usr/sbin/policy-rc.d
  kept=$(mktemp -d) || exit
  [ ! -e $policy ] || mv $policy "$kept/"
  trap 'rm -f $policy; [ ! -e "$kept/policy-rc.d" ] || mv "$kept/policy-rc.d" $policy; rmdir "$kept"' EXIT
  printf '#!/bin/sh\nexit 101\n' >$policy
  chmod 755 $policy
  "$@"
)

# install PACKAGE...: installs the missing packages, as root.
install() {
  local missing=()
  for package in "$@"; do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q '^install ok installed$' || missing+=("$package")
  done
  [ ${#missing[@]} -eq 0 ] && return
  if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
    echo "Debian 12 packages are missing. Run this script as root on Debian 12, or install them: apt-get install ${missing[*]}" >&2
    return 1
  fi
  echo "Installing ${missing[*]}" >&2
  apt-get update -qq &&
    DEBIAN_FRONTEND=noninteractive without_starts apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

if ! command -v swift >/dev/null; then
  echo "No swift on the PATH: install a Swift 6.3 toolchain (swift.org/install) and add its usr/bin to PATH." >&2
  exit 1
fi
