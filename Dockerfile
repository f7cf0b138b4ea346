# An image with nothing but the static binary, run as a user without rights.
#
#   docker build --build-arg COMMIT="$(git describe --tags --always --dirty)" -t exchange .
#   docker run --rm exchange config example > exchange.yaml
#   docker run -d --name exchange -p 127.0.0.1:8080:8080 -v exchange:/data --stop-timeout 40 \
#       --read-only --cap-drop ALL --security-opt no-new-privileges --pids-limit 4096 \
#       --ulimit nofile=131072 --ulimit core=0 \
#       -v "$PWD/exchange.yaml:/exchange.yaml:ro" -e EXCHANGE_CONFIG=/exchange.yaml exchange
#   docker exec exchange /exchange account create alice
#
# The stop timeout is above timing.stop_max_ms: the exchange finishes what is in flight and makes a
# snapshot. The operator's socket is in /data, hence `docker exec`. Nothing but /data
# is written to, not even /tmp, so the root is read-only.

# `scripts/pin-images` writes the digest behind each image: run it where the registries can be reached.
FROM golang:1.26 AS build
WORKDIR /src
# The modules are a layer of their own, which stays while go.mod and go.sum do.
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG COMMIT
RUN CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags "-s -w -X exchange/cmd/exchange/cli.commit=${COMMIT}" -o /out/exchange ./cmd/exchange \
    && mkdir /out/data

# Has certificates for rediss://, time zones, and the user 65532; no shell.
FROM gcr.io/distroless/static-debian12:nonroot
COPY --from=build /out/exchange /exchange
# A new volume takes over the owner of the folder it is mounted on.
COPY --from=build --chown=65532:65532 /out/data /data
USER 65532:65532
# So that ./data/operator.sock is the one in the volume.
WORKDIR /
VOLUME /data
EXPOSE 8080
# Asks 127.0.0.1:8080. Who serves on another port, or with TLS, sets EXCHANGE_LISTEN and EXCHANGE_TLS_CERT_FILE, which
# `health` follows.
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 CMD ["/exchange", "health"]
ENTRYPOINT ["/exchange"]
CMD ["serve", "--listen", "0.0.0.0:8080", "--store", "pebble:/data"]
