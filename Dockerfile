# SPDX-License-Identifier: Apache-2.0
# docker build -t trainyard . && docker run --rm -v "$PWD":/work -w /work trainyard --help
FROM debian:12-slim AS build
WORKDIR /src
COPY . .
RUN ./dev package

FROM debian:12-slim
COPY --from=build /src/out/trainyard_*.deb /tmp/
RUN apt-get update -qq \
    && apt-get install -y -qq --no-install-recommends gnuplot-nox /tmp/trainyard_*.deb \
    && rm -rf /var/lib/apt/lists/* /tmp/trainyard_*.deb
ENTRYPOINT ["trainyard"]
