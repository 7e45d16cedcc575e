# SPDX-License-Identifier: Apache-2.0
# docker build -t trainyard . && docker run --rm -v "$PWD":/work -w /work trainyard --help
FROM debian:12-slim AS build
WORKDIR /src
COPY . .
RUN scripts/setup.sh build && scripts/build.sh release trainyard

FROM debian:12-slim
RUN apt-get update -qq \
    && apt-get install -y -qq --no-install-recommends coinor-libcbc3 gnuplot-nox libarchive13 \
       libcsv3 libfmt9 libgrpc++1.51 liblapack3 libprotobuf32 libpugixml1v5 libsqlite3-0 libssl3 \
       libtcmalloc-minimal4 libzstd1 zlib1g \
    && rm -rf /var/lib/apt/lists/*
COPY --from=build /src/build/release/trainyard /usr/local/bin/trainyard
ENTRYPOINT ["trainyard"]
