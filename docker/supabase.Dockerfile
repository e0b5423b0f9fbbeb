# The image of self-hosted Supabase with graph_kernel. After `make packages`, with the tag that docker-compose.yml names:
#   docker build --file docker/supabase.Dockerfile --build-arg SUPABASE_POSTGRES_TAG=17.6.1.136 --build-arg PG_MAJOR=17 \
#     target/packages
# The image is Alpine with a PostgreSQL from Nix, linked with glibc 2.40: neither .deb nor .apk fits, the archive does.
# What was tested is the RUN line below, in a Debian root with a stand-in for the image's `postgres`; not the image.
ARG SUPABASE_POSTGRES_TAG=17.6.1.136
FROM supabase/postgres:${SUPABASE_POSTGRES_TAG}
ARG PG_MAJOR=17
USER root
COPY graph_kernel-*-pg${PG_MAJOR}-linux-*.tar.gz /tmp/
# The image's `postgres` is a script that sets NIX_PGLIBDIR, and looks for libraries there, not where pg_config says.
RUN set -eux; \
    pg_config --version | grep -q "^PostgreSQL ${PG_MAJOR}[.]"; \
    mkdir /tmp/graph_kernel; \
    tar -xzf /tmp/graph_kernel-*-pg${PG_MAJOR}-linux-"$(uname -m)".tar.gz -C /tmp/graph_kernel --strip-components=1; \
    lib="$(sed -n "s/^export NIX_PGLIBDIR='\(.*\)'.*/\1/p" /usr/bin/postgres)"; \
    test -d "$lib"; \
    install -m 755 /tmp/graph_kernel/lib/graph_kernel.so "$lib/"; \
    install -m 644 /tmp/graph_kernel/share/extension/* "$(pg_config --sharedir)/extension/"; \
    rm -rf /tmp/graph_kernel*
