# The operator and the spool keeper. Any Debian-like base with Python 3.11 and its venv module will do.
ARG BASE_IMAGE=docker.io/library/python:3.11-slim-bookworm

# --- dependencies: their own stage and layer, made again only when a lock file changes
FROM ${BASE_IMAGE} AS dependencies
# More options for pip, for example "--no-index --find-links=/mnt" with the wheels mounted there.
ARG PIP_OPTIONS=""
WORKDIR /src
COPY requirements.lock requirements-build.lock ./
# pip lives beside, not in, the environment that goes into the image.
RUN python3 -m venv /opt/pip \
    && python3 -m venv --without-pip /opt/queen-operator \
    && /opt/pip/bin/pip install --no-cache-dir --disable-pip-version-check --require-hashes --no-deps ${PIP_OPTIONS} \
        -r requirements-build.lock \
    && /opt/pip/bin/pip --python /opt/queen-operator/bin/python3 install --no-cache-dir --disable-pip-version-check \
        --require-hashes --no-deps --only-binary=:all: ${PIP_OPTIONS} -r requirements.lock

# --- the operator itself
FROM dependencies AS operator
COPY pyproject.toml README.md LICENSE ./
COPY operator operator
# -IS: neither the environment nor site-packages are looked at; the keeper needs the standard library alone, and every
# import it does not do is memory that each broker pod saves. The import (not the file) is named to use its byte code.
RUN /opt/pip/bin/pip wheel --no-cache-dir --disable-pip-version-check --no-deps --no-build-isolation --no-index \
        -w /dist . \
    && /opt/pip/bin/pip --python /opt/queen-operator/bin/python3 install --disable-pip-version-check --no-deps \
        --no-index --root /installed /dist/*.whl \
    && packages="$(/opt/queen-operator/bin/python3 -c 'import sysconfig; print(sysconfig.get_path("purelib"))')" \
    && mkdir -p /installed/usr/local/bin \
    && printf '%s\n' '#!/opt/queen-operator/bin/python3 -IS' 'import sys' "sys.path.append('${packages}')" \
        'from queen_operator.spool_keeper.main import main' 'sys.exit(main())' > /installed/usr/local/bin/spool-keeper \
    && chmod 755 /installed/usr/local/bin/spool-keeper

# --- what is shipped
FROM ${BASE_IMAGE}
# The root file system is read-only in the cluster, so the standard library's byte code has to be there already.
RUN python3 -m compileall -q -x '/(test|tests|idlelib|lib2to3|dist-packages|site-packages)/' \
        "$(python3 -c 'import sysconfig; print(sysconfig.get_path("stdlib"))')" \
    && { getent passwd 65532 > /dev/null || echo 'nonroot:x:65532:65532::/nonexistent:/sbin/nologin' >> /etc/passwd; } \
    && { getent group 65532 > /dev/null || echo 'nonroot:x:65532:' >> /etc/group; }
COPY --from=dependencies /opt/queen-operator /opt/queen-operator
COPY --from=operator /installed /
ENV PATH=/opt/queen-operator/bin:/usr/local/bin:/usr/bin:/bin \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
USER 65532:65532
ENTRYPOINT ["queen-operator"]
