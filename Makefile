# Two commands: `make figures` and `make test`. Both first set up .venv from requirements.lock (the
# only step that needs a network) and write nothing outside this folder. `make` alone prints the
# targets.

PROFILE = mini
ONLY =
MODEL =
WIKI =
ACCEPT =
DEVICE =
WORKERS =
SCHEDULER =
RESTAMP =
FOLD =
RATE =
FROM =
TO =
STEPS =
TOKENIZER =
ARGS =
# The longest first, so that two side by side end together.
MEMBERS := mini-xlmr-large mini-llama mini-llama-bi20 mini-llama-bi2 mini-llama-en80 mini-llama-en95 \
	mini-mbert mini-xlm mini-xlmr mini-xlmr-6 mini-xlmr-12 mini-infoxlm
PYTHON ?= python3

VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

# Notebooks that take longest: first, so that two side by side end together.
LONGEST := xprobe-3-mapping mixing-3-controls mixing-2-paraphrase igap-2-ranking igap-3-models abx-3-outcomes \
	mixing-1-nli

ALL := $(sort $(basename $(notdir $(wildcard notebooks/*.ipynb))))
PROFILES := $(sort $(basename $(notdir $(wildcard notebooks/profiles/*.yaml))))
CHOSEN := $(if $(ONLY),$(basename $(notdir $(ONLY))),$(ALL))
ORDERED := $(filter $(CHOSEN),$(LONGEST)) $(filter-out $(LONGEST),$(CHOSEN))
BUILT := $(ORDERED:%=build/$(PROFILE)/%.ipynb)
# The tests of one chapter: of how it is written, and those that import its module.
CHAPTER_TESTS = $(if $(ONLY),tests/test_notebook_style.py $(shell grep -rlE --include='test_*.py' \
	$(foreach name,$(subst -,_,$(CHOSEN)),-e '^(import|from) $(name)( |$$)') tests))

# What every notebook depends on, besides itself, its profile, the modules that it reaches
# (notebooks/run/needs.py) and the results of its lens.
SHIPPED := $(shell find data -type f ! -path 'data/results/*' ! -name '.*' 2>/dev/null)

# What is not known is refused: targets and their variables are those of the lines that `make` prints,
# and other programs' variables may be given to all. HELP holds "target" and "target:VARIABLE".
HASH := \#
HELP := $(shell awk '/^[a-z]+:.*$(HASH)$(HASH) / {print name = substr($$1, 1, index($$1, ":") - 1); \
	while (match($$0, /\[[A-Z_]+=/)) {print name ":" substr($$0, RSTART + 1, RLENGTH - 2); \
	$$0 = substr($$0, RSTART + RLENGTH)}}' '$(strip $(MAKEFILE_LIST))')
TARGETS := $(foreach word,$(HELP),$(if $(findstring :,$(word)),,$(word)))
# Of these make itself is the only caller, or who knows this file.
INNER := build/% pretrain-% $(READY) $(TOOLS)
OTHERS := PYTHON SHELL TMPDIR MAKE% XLX_% PIP_% UV_% HF_% OMP_% OPENBLAS_% CUDA_% PYTORCH_%
GOALS := $(or $(MAKECMDGOALS),help)
users = $(patsubst %:$1,%,$(filter %:$1,$(HELP)))
nearest = $(shell $(PYTHON) -Ic 'import difflib, sys; near = {x.lower(): x for x in sys.argv[2:]}; \
	print(near[difflib.get_close_matches(sys.argv[1].lower(), near, 1, 0)[0]])' '$(subst ','\'',$1)' $2)
refused = $(if $(call users,$1),$(if $(filter $(INNER) $(call users,$1),$(GOALS)),,\
  $(error make $(GOALS) does not use $1=: leave it out, or use it with: $(call users,$1))),\
  $(error no variable '$1': do you mean $(call nearest,$1,$(patsubst %,%=,$(foreach \
  word,$(HELP),$(if $(findstring :,$(word)),$(lastword $(subst :, ,$(word)))))))?))
$(foreach goal,$(filter-out $(TARGETS) $(INNER),$(GOALS)),\
  $(error no target '$(goal)': do you mean make $(call nearest,$(goal),$(TARGETS))?))
$(foreach name,$(filter-out $(OTHERS),$(.VARIABLES)),\
  $(if $(filter command,$(firstword $(origin $(name)))),$(call refused,$(name))))

ifneq ($(filter figures plan store results test,$(MAKECMDGOALS)),)
  ifeq ($(ALL),)
    $(error there is no notebook in notebooks/)
  endif
  ifneq ($(filter-out $(ALL),$(CHOSEN)),)
    $(error no notebook '$(filter-out $(ALL),$(CHOSEN))' (ONLY=...); there are: $(ALL))
  endif
  ifneq ($(words $(filter $(PROFILES),$(PROFILE))),1)
    $(error no profile '$(PROFILE)' (PROFILE=...); there are: $(PROFILES))
  endif
endif

ifneq ($(filter build/%,$(MAKECMDGOALS)),)
  COMMA := ,
  $(foreach line,$(shell $(PYTHON) -I notebooks/run/needs.py),$(eval \
    build/$(PROFILE)/$(subst :,: ,$(subst $(COMMA), ,$(line)))))
  $(foreach name,$(ALL),$(eval build/$(PROFILE)/$(name).ipynb: \
    $(wildcard data/results/$(firstword $(subst -, ,$(name)))/*/*.parquet)))
endif

# mini needs nothing from the network, and says so to the libraries: a slip fails at once.
OFFLINE := HF_HUB_OFFLINE=1 TRANSFORMERS_OFFLINE=1 HF_DATASETS_OFFLINE=1
export PYTHONHASHSEED := 0
export TOKENIZERS_PARALLELISM := false
# The threads of numpy's linear algebra and torch's wait for each other by spinning: six times slower
# where both multiply small matrices in turn. torch has those that are worth it.
export OPENBLAS_NUM_THREADS := 1
# The others sleep while they wait: on a busy machine spinning takes most of the time there is.
export OMP_WAIT_POLICY ?= PASSIVE
# Memory that was given back is kept for the next arrays, as to take it from the system again, page by
# page, takes long (glibc's names; other systems do not read them).
export MALLOC_TRIM_THRESHOLD_ ?= 1000000000
export MALLOC_MMAP_THRESHOLD_ ?= 1000000000
export ARROW_DEFAULT_MEMORY_POOL ?= system
# Settings, histories and downloads of the tools stay in the repository (HF_HOME, if set, is kept).
export HF_HOME ?= $(CURDIR)/cache/huggingface
TOOLS := cache/tools
export IPYTHONDIR := $(CURDIR)/$(TOOLS)/ipython
export JUPYTER_CONFIG_DIR := $(CURDIR)/$(TOOLS)/jupyter/config
export JUPYTER_DATA_DIR := $(CURDIR)/$(TOOLS)/jupyter/data
export JUPYTER_RUNTIME_DIR := $(CURDIR)/$(TOOLS)/jupyter/runtime
export MPLCONFIGDIR := $(CURDIR)/$(TOOLS)/matplotlib
# An agg backend from outside would make the figures vanish from the notebooks.
unexport MPLBACKEND PYTHONHOME PYTHONPATH
# Without its compiled modules every kernel would spend ten seconds on compiling torch and the rest.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.SECONDARY:
.PHONY: help figures built test check results reproduce lab book explorer plan report models convert wiki pretrain bench lint format store lock clean

help: ## print this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' Makefile
	@echo "notebooks: $(or $(ALL),none yet)"
	@echo "profiles:  $(or $(PROFILES),none yet)"

# Two at once where models are small, of a thread each, as more would wait for each other; those of
# another profile need the whole machine.
SIDE_BY_SIDE := $(and $(filter mini,$(PROFILE)),$(word 2,$(CHOSEN)))

figures: $(READY) | $(TOOLS) ## execute the notebooks, write figures/ [ONLY=abx-2-dynamics] [PROFILE=paper]
	@$(if $(SIDE_BY_SIDE),OMP_NUM_THREADS=1) $(MAKE) --no-print-directory $(if $(SIDE_BY_SIDE),-j2) $(BUILT)
	@echo "figures are up to date (profile $(PROFILE): $(CHOSEN))"

build/$(PROFILE)/%.ipynb: notebooks/%.ipynb notebooks/profiles/$(PROFILE).yaml \
		$(SHIPPED) requirements.lock | $(READY) $(TOOLS)
	@echo "$*: running (profile $(PROFILE))"
	@$(if $(filter mini,$(PROFILE)),$(OFFLINE)) $(BIN)/python -m notebooks.run.runner $* --profile $(PROFILE)

# Files in the order given, the longest early; two at once, as each worker imports all there is. A
# third would wait less for processes and disks, and costs a fifth more of the processor.
LANES := -n 2 --dist loadfile --no-loadscope-reorder

# The notebooks take their results from the ledger alone; a sample of these is computed again, where
# all notebooks are tested.
test: lint | $(TOOLS) ## check style, run the tests, re-execute the notebooks, compute a sample of results again [ONLY=abx-2-dynamics] [AUDIT_SEED=2]
	$(OFFLINE) OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q $(LANES) -m "not slow" $(CHAPTER_TESTS)
	$(if $(ONLY),,$(BIN)/python -m notebooks.run.audit sample build/test/sample)
	$(OFFLINE) OMP_NUM_THREADS=1 XLX_POLICY=only $(if $(ONLY),,XLX_AUDIT="$(CURDIR)/build/test/sample") \
		$(BIN)/python -m pytest -q $(LANES) -p tests.notebook_kernels --nbval \
		--nbval-cell-timeout 900 $(ORDERED:%=notebooks/%.ipynb)
	$(if $(ONLY),,$(BIN)/python -m notebooks.run.audit report)

check: test ## test, and the slow tests: other models and profiles, kills, mutations, the wheel, coverage [AUDIT_SEED=2]
	$(OFFLINE) OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q $(LANES) -m slow

results: figures ## add the results that the notebooks ask for to data/results [ONLY=abx-2-dynamics] [RESTAMP=1] [FOLD=abx/score or all]
	$(OFFLINE) $(BIN)/python -m notebooks.run.gathering $(if $(RESTAMP),--restamp) $(if $(FOLD),--fold $(FOLD))

reproduce: $(READY) | $(TOOLS) ## compute all results from nothing and compare; resumes [ONLY=notebook or kind] [WORKERS=n] [SCHEDULER=tcp://host:8786]
	@$(OFFLINE) XLX_WORKERS=$(WORKERS) XLX_SCHEDULER=$(SCHEDULER) \
		$(BIN)/python -m notebooks.run.reproduction --only $(ONLY)

lab: $(READY) | $(TOOLS) ## open JupyterLab on copies of the notebooks, in playground/ [LAB="--no-browser"]
	@$(BIN)/python -m notebooks.run.runner --play
	$(BIN)/jupyter-lab --ServerApp.root_dir="$(CURDIR)" --LabApp.default_url=/lab/tree/playground $(LAB)

book: $(READY) build/explorer.html | $(TOOLS) ## make a site of the notebooks as they are stored, in build/book; runs nothing
	@$(BIN)/python -m notebooks.book.staging build/book-pages
	@$(BIN)/python -m sphinx -j 2 -W -q -b html -d build/book-doctrees build/book-pages build/book
	@echo "build/book/index.html"

explorer: build/explorer.html ## make a page to choose pairs, layers and checkpoints on, of the ledger alone

build/explorer.html: notebooks/book/explorer.py notebooks/shared/mexa_tables.py xlx/report/explorer.py xlx/report/explorer.html requirements.lock \
		$(wildcard data/results/*/score/*.parquet data/results/*/coverage/*.parquet) | $(READY) $(TOOLS)
	@$(OFFLINE) $(BIN)/python -m notebooks.book.explorer $@

# Fetches nothing and runs nothing; its status is 1 where something is missing.
plan: $(READY) | $(TOOLS) ## runs, predictions, hours of a profile that fine-tunes, and what is missing [PROFILE=paper] [ONLY=igap-3-models] [RATE=15]
	@$(OFFLINE) $(BIN)/python -m notebooks.run.plan $(if $(ONLY),$(CHOSEN)) --profile $(PROFILE) $(addprefix --rate ,$(RATE))

report: $(READY) | $(TOOLS) ## from a model to a report, into build/reports [MODEL=path/or/hub-name] [ARGS="--quick"]
	@NAME='$(subst ','\'',$(MODEL))'; $(BIN)/python -m notebooks.run.report_notebook report $${NAME:+"$$NAME"} $(ARGS)

# Needs the network, unlike the others; what is fetched already does not.
models: $(READY) | $(TOOLS) ## fetch public models into cache/models [MODEL=multilingual-e5-small] [ACCEPT=gemma]
	@$(BIN)/python data/models-public/make.py $(MODEL) $(addprefix --accept ,$(ACCEPT))

# Of XLM-R, as fairseq wrote them, into ordinary folders that the profile `paper` reads.
convert: $(READY) | $(TOOLS) ## make fairseq's checkpoints a series in cache/xlmr-across-time; resumes [FROM=folder] [STEPS="5000 1500000"] [TOKENIZER=folder] [TO=folder] [ARGS=...]
	@$(OFFLINE) $(BIN)/python data/models-long/fairseq_to_hf.py $(if $(FROM),"$(FROM)") $(if $(TO),--to "$(TO)") \
		$(if $(TOKENIZER),--tokenizer "$(TOKENIZER)") $(if $(STEPS),--steps $(STEPS)) $(ARGS)

# What WikiExtractor (github.com/attardi/wikiextractor) wrote of a dump, by a model of UDPipe 1
# (hdl.handle.net/11234/1-3131): both are fetched by hand. One language a call.
wiki: $(READY) | $(TOOLS) ## parse a Wikipedia dump into cache/wiki; resumes [FROM=folder] [MODEL=german.udpipe] [WIKI=de]
	@$(BIN)/python data/trees/parse_wiki.py "$(FROM)" "$(MODEL)" "$(WIKI)" cache/wiki/$(WIKI)

# One thread each, two side by side: the shipped members were made so, and another number of threads
# adds up in another order. MODEL=base-xlmr DEVICE=cuda trains the large-scale version on a GPU.
pretrain: $(READY) | $(TOOLS) ## train the miniature models, into build/models (8 hours; resumes) [MODEL=mini-xlm] [DEVICE=cuda]
	@$(MAKE) --no-print-directory -j2 $(addprefix pretrain-,$(if $(MODEL),$(MODEL),$(MEMBERS)))

pretrain-%: $(READY) | $(TOOLS)
	$(OFFLINE) OMP_NUM_THREADS=1 $(BIN)/python data/models-long/pretrain.py $* --out build/models \
		$(addprefix --device ,$(DEVICE))

bench: $(READY) | $(TOOLS) ## measure speed and memory; of a chapter, where its time goes [ONLY=abx-2-dynamics]
	$(OFFLINE) $(BIN)/python -m tests.bench$(if $(ONLY),.dearest $(CHOSEN))

lint: $(READY) ## check style (ruff), notebooks included
	$(BIN)/ruff check
	$(BIN)/ruff format --check

format: $(READY) ## put style right where a tool can
	$(BIN)/ruff check --fix-only
	$(BIN)/ruff format

store: figures ## copy the outputs of the executed notebooks into notebooks/, to commit them [ONLY=abx-2-dynamics]
	@for name in $(CHOSEN); do $(BIN)/python -m notebooks.run.runner $$name --store || exit 1; done

# What takes hours, or is asked for by name, stays.
clean: ## remove tool caches and what is in build/ but models, reports and runs (.venv and cache/ stay)
	rm -rf $(filter-out $(addprefix build/,models reports runs),$(wildcard build/*)) \
		.pytest_cache .ruff_cache .hypothesis
	find xlx tests notebooks data -name __pycache__ -o -name .ipynb_checkpoints | xargs rm -rf

# uv does in seconds what takes pip minutes, and comes from the lock as well; its downloads stay in
# .venv. Where uv does not run, pip does the same. Every file has to have a hash of the lock, but
# where files of one's own are to be taken (PIP_FIND_LINKS: torch without CUDA, say), which have
# others: then the versions alone are held, and torch says itself what it needs of CUDA. uv does not
# read PIP_FIND_LINKS as pip does, so that is passed on.
# An environment that somebody else made is left alone; .begun marks those made here.
HASHES := $(if $(PIP_FIND_LINKS),,--require-hashes)
$(READY): requirements.lock pyproject.toml
	@if [ -L $(VENV) ] || [ -e $(VENV) -a ! -e $@ -a ! -e $(VENV)/.begun ]; then \
		echo "$(VENV) is a link, or make did not set it up, so it is left as it is: move it away" \
			"(mv $(VENV) $(VENV)-other) and call again" >&2; exit 2; fi
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(None if v >= (3, 11) else \
		"xlx needs Python 3.11 or newer, but $(PYTHON) is %d.%d: install a newer one, or name it: " \
		"make PYTHON=python3.12" % v[:2])'
	@echo "setting up $(VENV) (once; a minute or more, 2 GB or more)"
	@$(BIN)/python -c '' 2>/dev/null || { rm -rf $(VENV) && mkdir $(VENV) && touch $(VENV)/.begun \
		&& $(PYTHON) -m venv $(VENV); }
	@$(if $(PIP_FIND_LINKS),sed -E '/^(nvidia-|cuda-|triton)/d; / --hash=/d; s/ \\$$//',cat) \
		requirements.lock > $(VENV)/lock.txt
	@awk '/^uv==/ {on = 1} on {print} !/\\$$/ {on = 0}' $(VENV)/lock.txt > $(VENV)/uv.txt
	@export PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 \
		&& export UV_CACHE_DIR="$${UV_CACHE_DIR:-$(CURDIR)/$(VENV)/uv}" \
		&& if $(BIN)/python -m pip install --quiet -r $(VENV)/uv.txt \
			&& $(BIN)/uv --version >/dev/null; then \
			$(BIN)/uv pip install --quiet --compile-bytecode --python $(BIN)/python $(HASHES) \
				$(addprefix --find-links ,$(PIP_FIND_LINKS)) -r $(VENV)/lock.txt \
			&& $(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation -e . ; \
		else \
			$(BIN)/python -m pip install --quiet $(HASHES) -r $(VENV)/lock.txt \
			&& $(BIN)/python -m pip install --quiet --no-deps --no-build-isolation -e . ; \
		fi
	@touch $@

# Kernels make a million objects that live on: to look through them for rings took a twentieth.
$(TOOLS):
	@mkdir -p $@/ipython/profile_default/startup
	@echo 'import gc; gc.set_threshold(100_000, 50, 100); del gc' \
		> $@/ipython/profile_default/startup/collector.py

# requirements.lock: exact versions with hashes of their files for every platform, Python 3.11 and
# newer. It keeps the versions it has where pyproject.toml still allows them; UPGRADE=--upgrade takes
# the newest. Licences of what is installed: licences.tsv (`python -m tests.licences > licences.tsv`).
lock: $(READY) ## write requirements.lock from pyproject.toml [UPGRADE=--upgrade]
	cp requirements.lock requirements.lock.part
	$(BIN)/uv pip compile --quiet --universal --all-extras --no-header --no-annotate --no-emit-index-url \
		--no-emit-find-links --generate-hashes $(UPGRADE) pyproject.toml --output-file requirements.lock.part
	{ echo '# Written by `make lock` from pyproject.toml; do not edit.'; \
		cat requirements.lock.part; } > requirements.lock.new
	cmp -s requirements.lock.new requirements.lock || cp requirements.lock.new requirements.lock
	rm requirements.lock.new requirements.lock.part
