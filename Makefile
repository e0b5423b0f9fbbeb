# The front door: `make` lists what it does.
# PG_CONFIG names the PostgreSQL to build for (14 to 18); demo and tests run on a private copy of it.
PG_CONFIG ?= /usr/lib/postgresql/15/bin/pg_config
DATA ?=
ANCHOR ?=
SCALE ?= 1m
export PG_CONFIG DATA ANCHOR

SHELL := /bin/bash
harness := tests/harness
# In a recipe: the functions of the harness, set to the private copy of the server.
with_server := . $(harness)/common.sh && select_server "$(PG_CONFIG)" &&

.DEFAULT_GOAL := help
.PHONY: help setup demo psql figures stop test test-long bench pgvector fuzz lint build install package clean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' $(MAKEFILE_LIST) | expand -t 18

setup: ## install what is missing: Debian packages (as root), Rust, cargo-pgrx
	@$(harness)/setup.sh

demo: setup ## slice sample data in a throw-away server; DATA=folder, ANCHOR=uuid take others
	@$(harness)/demo.sh

psql: ## open the demo's server
	@$(harness)/server.sh psql demo -d postgres

figures: ## draw the figures of docs/why.md anew, in the demo's server; needs Graphviz
	@$(with_server) use_server demo && $(harness)/figures.sh

stop: ## end the demo's server
	@$(harness)/server.sh stop demo

test: setup ## run every test; the last line counts them
	@$(harness)/test.sh

test-long: setup ## run the tests that take long
	@$(with_server) cargo test --release -p graph_kernel_core -p graph_kernel_tests -- --ignored

bench: setup ## time slices beside the published crate and plain SQL; SCALE=1m, 10m or short
	@$(harness)/bench.sh $(SCALE)

pgvector: setup ## build pgvector from its Debian source package into the private server
	@$(harness)/pgvector.sh

fuzz: setup ## break policies and exports at random, millions of times
	@$(with_server) cargo test --release -p graph_kernel_tests --test trust_forgery mutated_text -- --ignored

lint: setup ## check format, lints and that all files tell one version
	@$(with_server) check_versions && check_format && check_clippy

build: setup ## build the extension
	@$(with_server) cargo build --release "$${features[@]}"

install: setup ## build and install into the PostgreSQL of PG_CONFIG itself
	@$(with_server) install_real "$(PG_CONFIG)"

package: setup ## build the files to put into a package, below target/
	@$(with_server) cargo pgrx package --pg-config "$(PG_CONFIG)" "$${features[@]}"

clean: ## end the demo's server and remove everything built
	@[[ ! -d target ]] || $(harness)/server.sh stop demo
	@[[ ! -f target/base ]] || rm -rf "$$(cat target/base)"
	@rm -rf target
