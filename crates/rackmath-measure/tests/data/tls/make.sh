#!/usr/bin/env bash
# Certificates of the TLS tests: an authority, and three of one key that it signed: good, for another host, and expired. The key guards nothing.
set -euo pipefail
cd "$(dirname "$0")"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 36500 -subj '/CN=rackmath test' \
  -addext 'basicConstraints=critical,CA:TRUE' -keyout "$work/ca.key" -out ca.pem 2>/dev/null
openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out server.key 2>/dev/null
sign() { # NAME SUBJECTS DATES...
  name=$1 subjects=$2
  shift 2
  openssl req -new -key server.key -subj "/CN=$name" -out "$work/$name.csr"
  printf 'subjectAltName=%s\nbasicConstraints=CA:FALSE\n' "$subjects" >"$work/$name.ext"
  openssl x509 -req -in "$work/$name.csr" -CA ca.pem -CAkey "$work/ca.key" -CAcreateserial -CAserial "$work/serial" \
    -extfile "$work/$name.ext" -out "$name.pem" "$@" 2>/dev/null
}
sign good 'IP:127.0.0.1,DNS:localhost' -days 36500
sign other 'DNS:other.example' -days 36500
sign expired 'IP:127.0.0.1,DNS:localhost' -days -1
