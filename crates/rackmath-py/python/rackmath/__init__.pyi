# Written by `rackmath schema --python` from the schemas of the questions; a test compares.
from collections.abc import Callable, Iterator, Mapping, Sequence
from os import PathLike
from typing import Any, Generic, Literal, NotRequired, TypedDict, TypeVar, overload

_D = TypeVar("_D", covariant=True)

__version__: str
__all__: list[str]
#: The engine for browsers, for `rackmath web --static DIR --wasm FILE`; None where the package was built without it.
WASM: str | None

class Error(ValueError):
    """What cannot be: what was given, of which field, and what would do."""

    problem: str
    field: str | None
    hint: str | None

class Catalog:
    """Models, chips, machines and prices: those inside, and those of a folder of your own, which win."""

    def __init__(self, folder: str | PathLike[str] | None = None) -> None: ...

class Table:
    """Rows: taken by pyarrow, polars, pandas and DuckDB without a copy."""

    def __len__(self) -> int: ...
    def __getitem__(self, name: str) -> list[Any]: ...
    @property
    def column_names(self) -> list[str]: ...
    def csv(self) -> str: ...
    def jsonl(self) -> str: ...
    def _repr_html_(self) -> str: ...
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

class Answer(Generic[_D]):
    """An answer: its text, its JSON, its picture, and its figures by name."""

    @property
    def data(self) -> _D: ...
    def json(self) -> str: ...
    def text(self, width: int = 100, *, color: bool = False) -> str: ...
    def svg(self, figure: str | None = None) -> str: ...
    def csv(self, figure: str | None = None) -> str: ...
    def table(self, name: str | None = None) -> Table: ...
    def get(self, name: str, default: Any = None) -> Any: ...
    def keys(self) -> list[str]: ...
    def __getitem__(self, name: str) -> Any: ...
    def __contains__(self, name: str) -> bool: ...
    def __iter__(self) -> Iterator[str]: ...
    def __len__(self) -> int: ...
    def _repr_html_(self) -> str: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

class Question:
    """A question as a function."""

    __name__: str
    def __call__(self, *args: Any, **kwargs: Any) -> Answer[Any]: ...
    def schema(self) -> str: ...

def question(name: str) -> Question: ...
def ask(
    name: str,
    request: str | bytes | Mapping[str, Any] | None = None,
    *,
    catalog: str | PathLike[str] | Catalog | None = None,
) -> str: ...
def sweep(
    question: str,
    *args: Any,
    over: Mapping[str, str | float | Sequence[str | float]] | None = None,
    columns: Sequence[str] | None = None,
    shard: tuple[int, int] | None = None,
    threads: int | None = None,
    progress: bool | Callable[[int, int], object] | None = None,
    feasible: bool = False,
    **kwargs: Any,
) -> Table: ...
def plan_shard(shard: tuple[int, int], *args: Any, **kwargs: Any) -> str: ...
@overload
def merge(parts: Sequence[Table], *, catalog: str | PathLike[str] | Catalog | None = None) -> Table: ...
@overload
def merge(parts: Sequence[str], *, catalog: str | PathLike[str] | Catalog | None = None) -> Answer[PlanData]: ...

StepExperts = TypedDict(
    "StepExperts",
    {
        "routed": int,
        "tokens_each": float,
        "top_k": int,
        "touched": float,
    },
)

StepMemory = TypedDict(
    "StepMemory",
    {
        "batch_max": NotRequired[float | None],
        "capacity_bytes": float,
        "chips_min": int,
        "context_max": NotRequired[float | None],
        "drain_s": float,
        "fits": bool,
        "kv_bytes": float,
        "kv_bytes_per_token": float,
        "missing_bytes": float,
        "weights_bytes": float,
    },
)

StepSparse = TypedDict(
    "StepSparse",
    {
        "block_tokens": float,
        "blocks": float,
        "entries": float,
    },
)

StepData = TypedDict(
    "StepData",
    {
        "all_weights_s": float,
        "assumptions": list[Any],
        "balance_batch": NotRequired[float | None],
        "balanced_context": NotRequired[float | None],
        "batch": float,
        "batch_by_speed": bool,
        "batch_chosen": bool,
        "binding": str,
        "chips": int,
        "compute_s": float,
        "context": float,
        "cost_floor_usd_per_mtok": NotRequired[float | None],
        "cost_usd_per_mtok": NotRequired[float | None],
        "experts": NotRequired[StepExperts | None],
        "kink_context": NotRequired[float | None],
        "kink_pass": NotRequired[float | None],
        "kv_s": float,
        "latency_floor_s": float,
        "lower_bound_s": float,
        "mbu": float,
        "memory": StepMemory,
        "mfu": float,
        "model": str,
        "pass": float,
        "ridge": NotRequired[float | None],
        "schema": NotRequired[int],
        "sources": list[Any],
        "sparse": NotRequired[StepSparse | None],
        "sparsity": float,
        "system": str,
        "time_s": float,
        "tokens_per_s": float,
        "tokens_per_s_user": float,
        "too_long": NotRequired[Any],
        "upper_bound_s": float,
        "weights_s": float,
    },
)

def step(
    model: str | PathLike[str] | Mapping[str, Any] | None = ...,
    *,
    sparse_blocks: float | str | None = ...,
    speed: float | str | None = ...,
    on: str | PathLike[str] | Mapping[str, Any] | None = ...,
    chips: int | str | None = ...,
    link: str | None = ...,
    quantization: str | None = ...,
    kv_cache_dtype: str | None = ...,
    compute_dtype: str | None = ...,
    counting: Literal["strict", "lecture"] | None = ...,
    overlap: str | None = ...,
    price: float | str | None = ...,
    basis: Literal["owner-hyperscaler", "owner-neocloud", "rental", "on-demand", "spot", "owner", "contract", "reserved"] | None = ...,
    batch: float | str | None = ...,
    context: float | str | None = ...,
    pass_: float | str | None = ...,
    files: Mapping[str, str | Mapping[str, Any]] | None = ...,
    catalog: str | PathLike[str] | Catalog | None = ...,
) -> Answer[StepData]:
    """How long one step takes, what binds it, what it costs, and whether it fits

    sparse_blocks: Blocks of the context that each token attends to, of the best length, and a summary of every block: 2 sqrt(n L) entries are read instead of L. More blocks, more quality.
    speed: Tokens per second that each user has at least: the largest batch that gives it is taken, and its cost is the price of the speed.
    model: Model: a catalogue name, a Hugging Face id, or the path of a config.json, of a folder holding one, or of a model .toml.
    on: Machine: a system, a chip, so many chips such as 8xh200, or the path of a chip or system .toml; with the price of a chip and hour in dollars behind an @ where the catalogue's is not meant, such as 8xh100@2.10.
    chips: Use this many chips of the machine instead of all.
    link: Join its chips by this link instead of their own: a rate one way out of each chip such as 25GB/s or 200Gb/s, a kind such as pcie4, pcie4 x8, 10GbE, nvlink (the bridge for two cards), a kind and its rate such as nvlink4:450GB/s, or ideal.
    quantization: Weight format: bf16, fp8, mxfp8, nvfp4, mxfp4, int4 and others.
    kv_cache_dtype: KV-cache format.
    compute_dtype: Arithmetic to compute in: bf16, fp8, fp4, int8 and others.
    counting: What is counted; lecture: no attention arithmetic, every weight read in every step.
    overlap: max, sum, kv+max (scaling book), or a share from 0 (none) to 1 (perfect).
    price: Price of a chip and hour, such as 2.10/h.
    basis: Whose price.
    batch: Sequences in the batch.
    context: Tokens of context of each sequence: 4096, 128k, 128Ki.
    pass_: Tokens of each sequence in this pass: 1 decodes, a prompt's length prefills.
    """

CurveMark = TypedDict(
    "CurveMark",
    {
        "label": Any,
        "x": float,
        "y": float,
    },
)

CurveSeries = TypedDict(
    "CurveSeries",
    {
        "name": Any,
        "points": list[list[Any]],
        "role": Any,
    },
)

CurveAxis = TypedDict(
    "CurveAxis",
    {
        "label": str,
        "scale": Any,
        "unit": Any,
    },
)

CurveFigure = TypedDict(
    "CurveFigure",
    {
        "marks": list[CurveMark],
        "series": list[CurveSeries],
        "subtitle": Any,
        "title": Any,
        "x": CurveAxis,
        "y": CurveAxis,
    },
)

CurveKink = TypedDict(
    "CurveKink",
    {
        "meaning": Any,
        "x": float,
    },
)

CurveRow = TypedDict(
    "CurveRow",
    {
        "binding": str,
        "compute_s": float,
        "cost_usd_per_mtok": NotRequired[float | None],
        "fits": bool,
        "kv_s": float,
        "label": NotRequired[str | None],
        "mfu": float,
        "time_s": float,
        "tokens_per_s": float,
        "weights_s": float,
        "x": float,
    },
)

CurveData = TypedDict(
    "CurveData",
    {
        "assumptions": list[Any],
        "cost": NotRequired[CurveFigure | None],
        "kinks": list[CurveKink],
        "model": str,
        "over": Any,
        "rows": list[CurveRow],
        "schema": NotRequired[int],
        "system": str,
        "time": CurveFigure,
    },
)

def curve(
    model: str | PathLike[str] | Mapping[str, Any] | None = ...,
    *,
    sparse_blocks: float | str | None = ...,
    on: str | PathLike[str] | Mapping[str, Any] | None = ...,
    chips: int | str | None = ...,
    link: str | None = ...,
    quantization: str | None = ...,
    kv_cache_dtype: str | None = ...,
    compute_dtype: str | None = ...,
    counting: Literal["strict", "lecture"] | None = ...,
    overlap: str | None = ...,
    price: float | str | None = ...,
    basis: Literal["owner-hyperscaler", "owner-neocloud", "rental", "on-demand", "spot", "owner", "contract", "reserved"] | None = ...,
    over: Literal["batch", "context", "pass", "chips", "precision"] | None = ...,
    from_: float | str | None = ...,
    to: float | str | None = ...,
    points: int | str | None = ...,
    batch: float | str | None = ...,
    context: float | str | None = ...,
    pass_: float | str | None = ...,
    files: Mapping[str, str | Mapping[str, Any]] | None = ...,
    catalog: str | PathLike[str] | Catalog | None = ...,
) -> Answer[CurveData]:
    """Time and cost along an axis: batch, context, pass length, chips or precision

    sparse_blocks: Blocks of the context that each token attends to, of the best length: 2 sqrt(n L) entries are read instead of L.
    model: Model: a catalogue name, a Hugging Face id, or the path of a config.json, of a folder holding one, or of a model .toml.
    on: Machine: a system, a chip, so many chips such as 8xh200, or the path of a chip or system .toml; with the price of a chip and hour in dollars behind an @ where the catalogue's is not meant, such as 8xh100@2.10.
    chips: Use this many chips of the machine instead of all.
    link: Join its chips by this link instead of their own: a rate one way out of each chip such as 25GB/s or 200Gb/s, a kind such as pcie4, pcie4 x8, 10GbE, nvlink (the bridge for two cards), a kind and its rate such as nvlink4:450GB/s, or ideal.
    quantization: Weight format: bf16, fp8, mxfp8, nvfp4, mxfp4, int4 and others.
    kv_cache_dtype: KV-cache format.
    compute_dtype: Arithmetic to compute in: bf16, fp8, fp4, int8 and others.
    counting: What is counted; lecture: no attention arithmetic, every weight read in every step.
    overlap: max, sum, kv+max (scaling book), or a share from 0 (none) to 1 (perfect).
    price: Price of a chip and hour, such as 2.10/h.
    basis: Whose price.
    over: What to sweep.
    from_: Where to start.
    to: Where to end.
    points: How many points.
    batch: Sequences, where they are not swept.
    context: Context, where it is not swept.
    pass_: Pass length, where it is not swept.
    """

ExplainInput = TypedDict(
    "ExplainInput",
    {
        "meaning": Any,
        "source": Any,
        "symbol": str,
        "value": str,
    },
)

ExplainWorking = TypedDict(
    "ExplainWorking",
    {
        "equation": str,
        "inputs": list[ExplainInput],
        "meaning": Any,
        "result": Any,
        "substituted": str,
        "symbol": str,
        "value": float,
    },
)

ExplainData = TypedDict(
    "ExplainData",
    {
        "assumptions": list[Any],
        "model": str,
        "not_held": NotRequired[Any],
        "schema": NotRequired[int],
        "system": str,
        "workings": list[ExplainWorking],
    },
)

def explain(
    what: Literal["step", "weights", "compute", "kv", "cost", "balance", "context", "ridge", "sparsity", "drain", "rate", "all"] | None = ...,
    model: str | PathLike[str] | Mapping[str, Any] | None = ...,
    *,
    on: str | PathLike[str] | Mapping[str, Any] | None = ...,
    chips: int | str | None = ...,
    link: str | None = ...,
    quantization: str | None = ...,
    kv_cache_dtype: str | None = ...,
    compute_dtype: str | None = ...,
    counting: Literal["strict", "lecture"] | None = ...,
    overlap: str | None = ...,
    price: float | str | None = ...,
    basis: Literal["owner-hyperscaler", "owner-neocloud", "rental", "on-demand", "spot", "owner", "contract", "reserved"] | None = ...,
    batch: float | str | None = ...,
    context: float | str | None = ...,
    files: Mapping[str, str | Mapping[str, Any]] | None = ...,
    catalog: str | PathLike[str] | Catalog | None = ...,
) -> Answer[ExplainData]:
    """A number opened into its equation, with values and sources

    model: Model: a catalogue name, a Hugging Face id, or the path of a config.json, of a folder holding one, or of a model .toml.
    on: Machine: a system, a chip, so many chips such as 8xh200, or the path of a chip or system .toml; with the price of a chip and hour in dollars behind an @ where the catalogue's is not meant, such as 8xh100@2.10.
    chips: Use this many chips of the machine instead of all.
    link: Join its chips by this link instead of their own: a rate one way out of each chip such as 25GB/s or 200Gb/s, a kind such as pcie4, pcie4 x8, 10GbE, nvlink (the bridge for two cards), a kind and its rate such as nvlink4:450GB/s, or ideal.
    quantization: Weight format: bf16, fp8, mxfp8, nvfp4, mxfp4, int4 and others.
    kv_cache_dtype: KV-cache format.
    compute_dtype: Arithmetic to compute in: bf16, fp8, fp4, int8 and others.
    counting: What is counted; lecture: no attention arithmetic, every weight read in every step.
    overlap: max, sum, kv+max (scaling book), or a share from 0 (none) to 1 (perfect).
    price: Price of a chip and hour, such as 2.10/h.
    basis: Whose price.
    what: Which number.
    batch: Sequences in the batch.
    context: Tokens of context of each sequence: 4096, 128k, 128Ki.
    """

ModelsPartCard = TypedDict(
    "ModelsPartCard",
    {
        "active_params": float,
        "dtype": str,
        "part": str,
        "total_params": float,
    },
)

ModelsPublishedCard = TypedDict(
    "ModelsPublishedCard",
    {
        "active_params": NotRequired[int | None],
        "difference": float,
        "exact": bool,
        "source": str,
        "total_params": int,
    },
)

ModelsCard = TypedDict(
    "ModelsCard",
    {
        "active_params": float,
        "aliases": list[str],
        "architecture": NotRequired[str | None],
        "attention": Any,
        "attention_flop_per_token": float,
        "context_max": NotRequired[int | None],
        "ffn": Any,
        "flop_per_token": float,
        "formats": Any,
        "hf": NotRequired[str | None],
        "hidden": NotRequired[int | None],
        "id": str,
        "kv_bytes_per_token": float,
        "kv_dtype": Any,
        "kv_read_bytes": float,
        "kv_stored_bytes": float,
        "layers": NotRequired[int | None],
        "mtp_params": str,
        "multiplied_params": float,
        "name": str,
        "notes": list[str],
        "parts": list[ModelsPartCard],
        "published": NotRequired[ModelsPublishedCard | None],
        "read_params": float,
        "source": Any,
        "sparsity": float,
        "total_params": str,
        "weights_bytes": float,
    },
)

ModelsData = TypedDict(
    "ModelsData",
    {
        "context": float,
        "models": list[ModelsCard],
        "schema": NotRequired[int],
    },
)

def models(
    *names: str | Sequence[str],
    context: float | str | None = ...,
    kv_cache_dtype: str | None = ...,
    files: Mapping[str, str | Mapping[str, Any]] | None = ...,
    catalog: str | PathLike[str] | Catalog | None = ...,
) -> Answer[ModelsData]:
    """Models: list all, show one in full, compare several

    names: Names; all of the catalogue when empty.
    context: Context the cache is shown at.
    kv_cache_dtype: Cache format; each model's 16-bit type unless given.
    """

ChipsFact = TypedDict(
    "ChipsFact",
    {
        "checked": NotRequired[str | None],
        "note": NotRequired[str | None],
        "range": NotRequired[list[Any] | None],
        "source": str,
        "trap": NotRequired[str | None],
        "value": str,
        "what": Any,
    },
)

ChipsPeak = TypedDict(
    "ChipsPeak",
    {
        "flop_per_s": float,
        "intensity": float,
        "math": str,
        "ridge": float,
    },
)

ChipsPriceCard = TypedDict(
    "ChipsPriceCard",
    {
        "as_of": str,
        "basis": str,
        "range_usd_per_hour": NotRequired[list[Any] | None],
        "source": str,
        "usd_per_hour": float,
    },
)

ChipsCard = TypedDict(
    "ChipsCard",
    {
        "aliases": list[str],
        "as_of": str,
        "bandwidth_bytes_per_s": float,
        "beta": NotRequired[float | None],
        "capacity_bytes": float,
        "dies": int,
        "domain": int,
        "drain_s": float,
        "facts": list[ChipsFact],
        "generation": str,
        "id": str,
        "link": str,
        "memory": str,
        "memory_bytes": float,
        "name": str,
        "peaks": list[ChipsPeak],
        "prices": list[ChipsPriceCard],
        "scale_out_bytes_per_s": NotRequired[float | None],
        "scale_up_bytes_per_s": NotRequired[float | None],
        "tdp_w": NotRequired[float | None],
        "usable_bytes": NotRequired[float | None],
        "vendor": str,
    },
)

ChipsData = TypedDict(
    "ChipsData",
    {
        "chips": list[ChipsCard],
        "schema": NotRequired[int],
    },
)

def chips(
    *names: str | Sequence[str],
    files: Mapping[str, str | Mapping[str, Any]] | None = ...,
    catalog: str | PathLike[str] | Catalog | None = ...,
) -> Answer[ChipsData]:
    """Chips: list all, show one with every source, compare several

    names: Names; all of the catalogue when empty.
    """

SystemsLevelCard = TypedDict(
    "SystemsLevelCard",
    {
        "bandwidth_bytes_per_s": float,
        "chips": int,
        "name": str,
        "source": str,
        "topology": str,
    },
)

SystemsCard = TypedDict(
    "SystemsCard",
    {
        "bandwidth_bytes_per_s": float,
        "capacity_bytes": float,
        "chip": str,
        "chips": int,
        "dies": int,
        "drain_s": float,
        "facts": list[list[Any]],
        "id": str,
        "levels": list[SystemsLevelCard],
        "name": str,
        "peak_flop_per_s": float,
        "peak_math": str,
        "power_w": NotRequired[float | None],
    },
)

SystemsData = TypedDict(
    "SystemsData",
    {
        "schema": NotRequired[int],
        "systems": list[SystemsCard],
    },
)

def systems(
    *names: str | Sequence[str],
    files: Mapping[str, str | Mapping[str, Any]] | None = ...,
    catalog: str | PathLike[str] | Catalog | None = ...,
) -> Answer[SystemsData]:
    """Machines: nodes, racks and pods with their networks

    names: Names; all of the catalogue when empty.
    """

LectureNumber = TypedDict(
    "LectureNumber",
    {
        "inputs": str,
        "lecture": str,
        "ours": str,
        "why": str,
    },
)

LectureClaim = TypedDict(
    "LectureClaim",
    {
        "conclusion": str,
        "formula": str,
        "id": str,
        "numbers": list[LectureNumber],
        "title": str,
    },
)

LectureData = TypedDict(
    "LectureData",
    {
        "claims": list[LectureClaim],
        "schema": NotRequired[int],
        "source": str,
    },
)

def lecture(
    claim: str | None = ...,
    *,
    files: Mapping[str, str | Mapping[str, Any]] | None = ...,
    catalog: str | PathLike[str] | Catalog | None = ...,
) -> Answer[LectureData]:
    """The lecture claim by claim: its formula, its number, ours, and why they differ

    claim: A claim such as D9; all when empty.
    """

StationRequest = TypedDict(
    "StationRequest",
    {
        "even": NotRequired[bool],
        "interval_s": NotRequired[float],
        "rate_per_s": NotRequired[float],
        "requests": NotRequired[int],
        "seats": NotRequired[int],
        "seed": NotRequired[int],
        "tokens": NotRequired[int],
    },
)

StationData = TypedDict(
    "StationData",
    {
        "fill": float,
        "mean_first_token_s": float,
        "mean_wait_s": float,
        "mean_with_seats_s": float,
        "p99_first_token_s": float,
        "per_token_s": float,
        "request": StationRequest,
        "schema": NotRequired[int],
        "stable": bool,
        "steps": int,
        "sustainable_rate_per_s": float,
        "worst_wait_s": float,
        "worst_with_seats_s": float,
    },
)

def station(
    *,
    interval: float | str | None = ...,
    seats: int | str | None = ...,
    rate: float | str | None = ...,
    tokens: int | str | None = ...,
    requests: int | str | None = ...,
    even: bool | None = ...,
    seed: int | str | None = ...,
    files: Mapping[str, str | Mapping[str, Any]] | None = ...,
    catalog: str | PathLike[str] | Catalog | None = ...,
) -> Answer[StationData]:
    """Trains that leave on time: waits, time to first token and fill of fixed steps

    interval: Time of one step.
    seats: Sequences a step can hold.
    rate: Requests per second.
    tokens: Output tokens of each request.
    requests: Requests to simulate.
    even: Whether they arrive at equal gaps instead of at random.
    seed: Seed of random arrivals.
    """

LayoutCommandCard = TypedDict(
    "LayoutCommandCard",
    {
        "cannot": NotRequired[str | None],
        "flags": NotRequired[str | None],
        "tool": str,
    },
)

LayoutEngineCard = TypedDict(
    "LayoutEngineCard",
    {
        "activation_gib": float,
        "block_size": int,
        "graphs_gib": float,
        "groups": int,
        "kv_cache_gib": float,
        "kv_cache_tokens": int,
        "longest_context": int,
        "name": str,
        "non_torch_gib": float,
        "num_gpu_blocks": int,
        "starts": bool,
        "total_gib": float,
        "utilisation": float,
        "utilisation_from": NotRequired[float | None],
        "utilisation_to": NotRequired[float | None],
        "weights_gib": float,
    },
)

LayoutExpertCard = TypedDict(
    "LayoutExpertCard",
    {
        "destinations": float,
        "experts": int,
        "fluctuation": float,
        "groups": int,
        "imbalance": float,
        "least_width": NotRequired[float | None],
        "slots": int,
        "slots_per_chip": float,
        "slowdown": float,
        "tokens_per_expert": float,
        "top_k": int,
        "up_to_out": NotRequired[float | None],
        "width": int,
    },
)

LayoutCardHeld = TypedDict(
    "LayoutCardHeld",
    {
        "card": str,
        "held_bytes": float,
        "layers": float,
        "room_bytes": float,
    },
)

LayoutOffloadCard = TypedDict(
    "LayoutOffloadCard",
    {
        "cards": list[LayoutCardHeld],
        "expert_layers_on_host": float,
        "from_disk": NotRequired[float | None],
        "host": str,
        "host_bandwidth_gb_per_s": float,
        "host_kv_bytes": float,
        "host_memory_bytes": float,
        "host_weight_bytes": float,
        "layers": int,
        "layers_on_host": float,
        "link_gb_per_s": float,
        "says": Any,
    },
)

LayoutStageCard = TypedDict(
    "LayoutStageCard",
    {
        "activation_bytes": float,
        "attention_bytes": float,
        "buffer_bytes": float,
        "chips": int,
        "dense_bytes": float,
        "embedding_bytes": float,
        "first_layer": int,
        "flop": float,
        "kv_bytes": float,
        "layers": int,
        "other_bytes": float,
        "reserve_bytes": float,
        "routed_bytes": float,
        "shared_bytes": float,
        "stage": int,
        "total_bytes": float,
    },
)

LayoutTrafficCard = TypedDict(
    "LayoutTrafficCard",
    {
        "bytes": float,
        "network": str,
        "predicted_s": NotRequired[float | None],
        "seconds": NotRequired[float | None],
        "what": str,
    },
)

LayoutData = TypedDict(
    "LayoutData",
    {
        "assumptions": list[Any],
        "batch": float,
        "batch_filled": bool,
        "batch_max": float,
        "capacity_bytes": float,
        "chips": int,
        "chips_available": int,
        "commands": list[LayoutCommandCard],
        "context": float,
        "context_max": NotRequired[float | None],
        "context_max_alone": NotRequired[float | None],
        "engine": NotRequired[LayoutEngineCard | None],
        "experts": NotRequired[LayoutExpertCard | None],
        "first_change": NotRequired[Any],
        "fits": bool,
        "layout": str,
        "layout_chosen": bool,
        "missing_bytes": float,
        "model": str,
        "offload": NotRequired[LayoutOffloadCard | None],
        "schema": NotRequired[int],
        "spare_bytes": float,
        "split_that_fits": NotRequired[Any],
        "stages": list[LayoutStageCard],
        "system": str,
        "traffic": list[LayoutTrafficCard],
        "verdict": Any,
        "warning": NotRequired[Any],
    },
)

def layout(
    model: str | PathLike[str] | Mapping[str, Any] | None = ...,
    *,
    engine: str | None = ...,
    gpu_memory_utilization: float | str | None = ...,
    pretend: bool | None = ...,
    on: str | PathLike[str] | Mapping[str, Any] | None = ...,
    chips: int | str | None = ...,
    link: str | None = ...,
    quantization: str | None = ...,
    kv_cache_dtype: str | None = ...,
    compute_dtype: str | None = ...,
    counting: Literal["strict", "lecture"] | None = ...,
    overlap: str | None = ...,
    price: float | str | None = ...,
    basis: Literal["owner-hyperscaler", "owner-neocloud", "rental", "on-demand", "spot", "owner", "contract", "reserved"] | None = ...,
    dcp: int | str | None = ...,
    tp: int | str | None = ...,
    pp: int | str | None = ...,
    dp: int | str | None = ...,
    cp: int | str | None = ...,
    ep: int | str | None = ...,
    etp: int | str | None = ...,
    redundant_experts: int | str | None = ...,
    flags: str | None = ...,
    tool: Literal["vllm", "sglang", "trtllm", "megatron", "tensorrt-llm", "tensorrt_llm", "tensorrtllm", "trt-llm", "trt_llm", "trt", "megatron-lm", "megatronlm", "nemo"] | None = ...,
    batch: float | str | None = ...,
    context: float | str | None = ...,
    max_num_batched_tokens: float | str | None = ...,
    routing: str | PathLike[str] | Mapping[str, Any] | None = ...,
    histogram: str | Sequence[float | str] | None = ...,
    cpu_moe: bool | None = ...,
    ngl: int | str | None = ...,
    offload_layers: int | str | None = ...,
    n_cpu_moe: int | str | None = ...,
    cpu_offload_gb: float | str | None = ...,
    host: str | None = ...,
    host_memory: float | str | None = ...,
    host_bandwidth: float | str | None = ...,
    host_link: float | str | None = ...,
    tensor_split: str | Sequence[float | str] | None = ...,
    disk: float | str | None = ...,
    files: Mapping[str, str | Mapping[str, Any]] | None = ...,
    catalog: str | PathLike[str] | Catalog | None = ...,
) -> Answer[LayoutData]:
    """One layout in full: what each chip holds and moves, and whether it fits

    engine: The engine whose own count at start-up decides, such as vllm@0.19.0: its dry run, graphs, pages and refusals; auto for the one that people take, which memory does by itself, ideal for a plain sum of what is held, as when absent.
    gpu_memory_utilization: Share of a chip's memory the engine may use.
    pretend: Places what the model's context does not allow all the same, and spells it for tools that do not run there.
    model: Model: a catalogue name, a Hugging Face id, or the path of a config.json, of a folder holding one, or of a model .toml.
    on: Machine: a system, a chip, so many chips such as 8xh200, or the path of a chip or system .toml; with the price of a chip and hour in dollars behind an @ where the catalogue's is not meant, such as 8xh100@2.10.
    chips: Use this many chips of the machine instead of all.
    link: Join its chips by this link instead of their own: a rate one way out of each chip such as 25GB/s or 200Gb/s, a kind such as pcie4, pcie4 x8, 10GbE, nvlink (the bridge for two cards), a kind and its rate such as nvlink4:450GB/s, or ideal.
    quantization: Weight format: bf16, fp8, mxfp8, nvfp4, mxfp4, int4 and others.
    kv_cache_dtype: KV-cache format.
    compute_dtype: Arithmetic to compute in: bf16, fp8, fp4, int8 and others.
    counting: What is counted; lecture: no attention arithmetic, every weight read in every step.
    overlap: max, sum, kv+max (scaling book), or a share from 0 (none) to 1 (perfect).
    price: Price of a chip and hour, such as 2.10/h.
    basis: Whose price.
    dcp: Decode context parallel: chips of a tensor-parallel group that share the tokens of a cache.
    tp: Tensor parallel.
    pp: Pipeline parallel.
    dp: Data parallel.
    cp: Context parallel.
    ep: Expert parallel.
    etp: Expert tensor parallel.
    redundant_experts: Redundant experts per layer.
    flags: A command line or flags of vLLM, SGLang, TensorRT-LLM or llama.cpp, whose layout, formats and memory are obeyed; of Megatron the layout alone.
    tool: Whose command line it is.
    batch: Sequences in flight.
    context: Tokens of context of each sequence: 4096, 128k, 128Ki.
    max_num_batched_tokens: Most tokens in one pass.
    routing: How tokens choose experts: uniform, power:1.2, or the path of a file with one count per expert.
    histogram: Tokens each expert got, measured, instead of routing.
    cpu_moe: All experts lie in the host's memory.
    ngl: Layers on the card as llama.cpp counts them, the output being one more; the others lie in the host's memory (-ngl).
    offload_layers: Layers in the host's memory, instead.
    n_cpu_moe: Layers, from the first on, whose experts lie in the host's memory.
    cpu_offload_gb: GiB of each chip's weights that lie in the host's memory and are sent in every pass, as vLLM and SGLang count.
    host: The host: a processor of the catalogue, such as epyc-9654 or ryzen-9-7950x.
    host_memory: Memory of the host, such as 512 GB.
    host_bandwidth: Bandwidth of that memory, such as 400 GB/s.
    host_link: The link between host and card one way, such as 32 GB/s.
    tensor_split: Shares of the model on cards joined by +, in their order, such as 3,1 (--tensor-split).
    disk: Rate of the disk that weights come from where the host's memory is too small for them (mmap), such as 5 GB/s.
    """

PipelineRequest = TypedDict(
    "PipelineRequest",
    {
        "activation_bytes": NotRequired[float],
        "forward_s": NotRequired[float],
        "hidden": NotRequired[float],
        "hop_s": NotRequired[float],
        "input_grad_s": NotRequired[float],
        "micro_batches": NotRequired[int],
        "schedule": NotRequired[str],
        "stage_factors": NotRequired[list[float]],
        "stages": NotRequired[int],
        "virtual_stages": NotRequired[int],
        "weight_grad_s": NotRequired[float],
    },
)

PipelineCellCard = TypedDict(
    "PipelineCellCard",
    {
        "chunk": int,
        "device": int,
        "end_s": float,
        "kind": str,
        "micro_batch": int,
        "paired": bool,
        "start_s": float,
    },
)

PipelineDeviceCard = TypedDict(
    "PipelineDeviceCard",
    {
        "busy_s": float,
        "idle": float,
        "peak_micro_batches": float,
    },
)

PipelineRunCard = TypedDict(
    "PipelineRunCard",
    {
        "barrier_bubble_s": float,
        "bubble_s": float,
        "cells": list[PipelineCellCard],
        "closed_bubble_s": NotRequired[float | None],
        "devices": list[PipelineDeviceCard],
        "idle": float,
        "lower_bound_s": NotRequired[float | None],
        "makespan_s": float,
        "peak_bytes": float,
        "peak_micro_batches": float,
        "schedule": str,
    },
)

PipelineData = TypedDict(
    "PipelineData",
    {
        "assumptions": list[Any],
        "left_out": list[str],
        "request": PipelineRequest,
        "runs": list[PipelineRunCard],
        "schema": NotRequired[int],
    },
)

def pipeline(
    *,
    schedule: Literal["gpipe", "1f1b", "interleaved", "zb-h1", "zb-h2", "zbv", "v-half", "v-min", "dualpipe", "dualpipev", "inference", "all"] | None = ...,
    stages: int | str | None = ...,
    micro_batches: int | str | None = ...,
    virtual_stages: int | str | None = ...,
    forward: float | str | None = ...,
    input_grad: float | str | None = ...,
    weight_grad: float | str | None = ...,
    hop: float | str | None = ...,
    stage_factors: str | Sequence[float | str] | None = ...,
    activation: float | str | None = ...,
    hidden: float | str | None = ...,
    files: Mapping[str, str | Mapping[str, Any]] | None = ...,
    catalog: str | PathLike[str] | Catalog | None = ...,
) -> Answer[PipelineData]:
    """A pipeline slot by slot: training schedules with bubble and memory, or inference

    schedule: A training schedule, or inference; all compares them.
    stages: Pipeline stages (devices).
    micro_batches: Micro-batches.
    virtual_stages: Chunks of the model per device, for interleaved.
    forward: Forward time of one device and micro-batch.
    input_grad: Backward time to the input.
    weight_grad: Backward time to the weights.
    hop: Time of a hop between devices.
    stage_factors: How much longer each stage takes than the mean, one factor per stage; empty when all are alike.
    activation: Activation bytes of one device and micro-batch.
    hidden: How much of an overlapped forward and backward pair is hidden (DualPipe): 0 to 1.
    """

RacksRack = TypedDict(
    "RacksRack",
    {
        "bandwidth_bytes_per_s": float,
        "beta": NotRequired[float | None],
        "cache_bytes": float,
        "capacity_bytes": float,
        "dies": int,
        "domains_for_weights": float,
        "drain_s": float,
        "experts": int,
        "largest_params": float,
        "packages": int,
        "power_w": NotRequired[float | None],
        "system": str,
        "two_domain_slowdown": NotRequired[float | None],
        "weights_s": float,
    },
)

RacksData = TypedDict(
    "RacksData",
    {
        "memory_share": float,
        "model": str,
        "racks": list[RacksRack],
        "schema": NotRequired[int],
        "weights_bytes": float,
    },
)

def racks(
    model: str | PathLike[str] | Mapping[str, Any] | None = ...,
    *systems: str | Sequence[str],
    quantization: str | None = ...,
    files: Mapping[str, str | Mapping[str, Any]] | None = ...,
    catalog: str | PathLike[str] | Catalog | None = ...,
) -> Answer[RacksData]:
    """Scale-up domains compared: latency floor, memory, largest expert layer

    model: The model.
    systems: The machines.
    quantization: Weight format instead of the checkpoint's.
    """

WhenRegime = TypedDict(
    "WhenRegime",
    {
        "binds": Any,
        "from": float,
        "from_ms": float,
        "to": float,
        "to_ms": float,
    },
)

WhenData = TypedDict(
    "WhenData",
    {
        "engine": str,
        "fixed": float,
        "from": NotRequired[float | None],
        "layout": str,
        "model": str,
        "most": float,
        "over": Any,
        "refused": list[Any],
        "regimes": list[WhenRegime],
        "schema": NotRequired[int],
        "sheet": NotRequired[Any],
        "supported": list[Any],
        "system": str,
        "what": Any,
    },
)

def when(
    model: str | PathLike[str] | Mapping[str, Any] | None = ...,
    *,
    pretend: bool | None = ...,
    on: str | PathLike[str] | Mapping[str, Any] | None = ...,
    chips: int | str | None = ...,
    link: str | None = ...,
    quantization: str | None = ...,
    kv_cache_dtype: str | None = ...,
    dcp: int | str | None = ...,
    tp: int | str | None = ...,
    pp: int | str | None = ...,
    dp: int | str | None = ...,
    cp: int | str | None = ...,
    ep: int | str | None = ...,
    etp: int | str | None = ...,
    redundant_experts: int | str | None = ...,
    engine: str | None = ...,
    what: Literal["arithmetic", "memory", "latency", "links", "host"] | None = ...,
    over: Literal["batch", "context"] | None = ...,
    batch: float | str | None = ...,
    context: float | str | None = ...,
    files: Mapping[str, str | Mapping[str, Any]] | None = ...,
    catalog: str | PathLike[str] | Catalog | None = ...,
) -> Answer[WhenData]:
    """From which batch or context on a chosen thing binds a decode step: arithmetic, memory, latency, links, the host

    pretend: Computes what the engine, the chip or the model's context do not allow, and says that it does not exist.
    model: Model: a catalogue name, a Hugging Face id, or the path of a config.json, of a folder holding one, or of a model .toml.
    on: Machine: a system, a chip, so many chips such as 8xh200, or the path of a chip or system .toml; with the price of a chip and hour in dollars behind an @ where the catalogue's is not meant, such as 8xh100@2.10.
    chips: Use this many chips of the machine instead of all.
    link: Join its chips by this link instead of their own: a rate one way out of each chip such as 25GB/s or 200Gb/s, a kind such as pcie4, pcie4 x8, 10GbE, nvlink (the bridge for two cards), a kind and its rate such as nvlink4:450GB/s, or ideal.
    quantization: Weight format: bf16, fp8, mxfp8, nvfp4, mxfp4, int4 and others.
    kv_cache_dtype: KV-cache format.
    dcp: Decode context parallel: chips of a tensor-parallel group that share the tokens of a cache.
    tp: Tensor parallel.
    pp: Pipeline parallel.
    dp: Data parallel.
    cp: Context parallel.
    ep: Expert parallel.
    etp: Expert tensor parallel.
    redundant_experts: Redundant experts per layer.
    engine: The engine, with a version where it matters; ideal is the roofline.
    what: What is to bind.
    over: What grows.
    batch: Sequences decoded together, where the context grows.
    context: Tokens of context of each sequence, where the batch grows.
    """

CheckCardMemory = TypedDict(
    "CheckCardMemory",
    {
        "card": str,
        "kv_cache_gib": float,
        "total_gib": float,
        "weights_gib": float,
    },
)

CheckChange = TypedDict(
    "CheckChange",
    {
        "caution": NotRequired[Any],
        "flag": str,
        "kv_cache_gib": float,
        "kv_cache_tokens": int,
        "max_concurrency": float,
        "max_model_len": int,
        "starts": bool,
    },
)

CheckSeconds3 = TypedDict(
    "CheckSeconds3",
    {
        "high": float,
        "low": float,
        "rows": int,
        "seconds": float,
        "what": Any,
    },
)

CheckData = TypedDict(
    "CheckData",
    {
        "activation_gib": float,
        "assumptions": list[Any],
        "block_size": int,
        "cards": list[CheckCardMemory],
        "cautions": list[Any],
        "changes": list[CheckChange],
        "chips": int,
        "dry_run_seqs": int,
        "engine": str,
        "graphs_estimate_gib": float,
        "graphs_gib": float,
        "ignored": list[str],
        "kv": Any,
        "kv_cache_gib": float,
        "kv_cache_groups": int,
        "kv_cache_tokens": int,
        "layout": str,
        "longest_context": int,
        "max_concurrency": float,
        "max_model_len": int,
        "max_num_batched_tokens": int,
        "max_num_seqs": int,
        "model": str,
        "non_torch_gib": float,
        "num_gpu_blocks": int,
        "obeyed": list[str],
        "prints": list[Any],
        "refusal": NotRequired[Any],
        "schema": NotRequired[int],
        "starts": bool,
        "startup": list[CheckSeconds3],
        "system": str,
        "total_gib": float,
        "unknown": list[str],
        "utilisation": float,
        "verdict": Any,
        "version": NotRequired[str | None],
        "weights": Any,
        "weights_gib": float,
    },
)

def check(
    command: str | PathLike[str] | Mapping[str, Any] | None = ...,
    *,
    on: str | PathLike[str] | Mapping[str, Any] | None = ...,
    engine: str | None = ...,
    model: str | PathLike[str] | Mapping[str, Any] | None = ...,
    container: str | None = ...,
    settings: str | PathLike[str] | Mapping[str, Any] | None = ...,
    files: Mapping[str, str | Mapping[str, Any]] | None = ...,
    catalog: str | PathLike[str] | Catalog | None = ...,
) -> Answer[CheckData]:
    """Whether a server starts as its command line says, what it would print, what it would refuse, and which flag to change

    command: The command line of a server in quotes, such as "vllm serve MODEL -tp 2": vLLM, SGLang, TensorRT-LLM, llama.cpp, also behind docker run; or the path of a compose file or of a manifest of Kubernetes.
    on: The machine it starts on: a system, a chip, or so many chips such as 2xh100; of a chip as many as the line asks for.
    engine: The engine's version, where the line does not say it: vllm@0.19.0.
    model: The model, where the line names a path that says nothing.
    container: The container, where a file starts several servers.
    settings: The file of settings the line names (--config, --extra_llm_api_options), in YAML.
    """

EstimateChange = TypedDict(
    "EstimateChange",
    {
        "apart": NotRequired[float | None],
        "caution": NotRequired[Any],
        "chips": int,
        "gain": NotRequired[float | None],
        "judged_by": Any,
        "output_tok_s_per_chip": float,
        "rescues": bool,
        "tpot_ms": float,
        "ttft_ms": float,
        "usd_per_mtok_input": NotRequired[float | None],
        "usd_per_mtok_output": NotRequired[float | None],
        "usd_per_mtok_with_prompts": NotRequired[float | None],
        "what": Any,
    },
)

EstimateRange = TypedDict(
    "EstimateRange",
    {
        "high": float,
        "low": float,
        "value": float,
    },
)

EstimateTimes = TypedDict(
    "EstimateTimes",
    {
        "limit_ms": NotRequired[float | None],
        "mean_ms": float,
        "metric": Any,
        "p50_ms": float,
        "p90_ms": float,
        "p99_ms": float,
        "percentile": NotRequired[float | None],
        "percentile_ms": NotRequired[float | None],
    },
)

EstimatePercentiles = TypedDict(
    "EstimatePercentiles",
    {
        "goodput": NotRequired[float | None],
        "queue_grows": bool,
        "requests": int,
        "seed": int,
        "times": list[EstimateTimes],
    },
)

EstimateSlo = TypedDict(
    "EstimateSlo",
    {
        "e2e_ms": NotRequired[float | None],
        "goodput_requests_per_s": float,
        "goodput_share": float,
        "met": bool,
        "tpot_ms": NotRequired[float | None],
        "ttft_ms": NotRequired[float | None],
        "verdict": Any,
    },
)

EstimatePiece = TypedDict(
    "EstimatePiece",
    {
        "ms": float,
        "share": float,
        "what": Any,
    },
)

EstimateBreakdown = TypedDict(
    "EstimateBreakdown",
    {
        "decode_ms": float,
        "ideal_ms": float,
        "limits": list[EstimatePiece],
        "losses": list[EstimatePiece],
        "mixed_ms": float,
        "of_limit": float,
        "parts": list[EstimatePiece],
        "step_ms": float,
    },
)

EstimateEmbedded = TypedDict(
    "EstimateEmbedded",
    {
        "busy": float,
        "input_tok_s": EstimateRange,
        "input_tok_s_per_chip": EstimateRange,
        "latency_ms": NotRequired[EstimateRange | None],
        "percentiles": NotRequired[EstimatePercentiles | None],
        "reading": Any,
        "requests_per_s": EstimateRange,
        "slo": NotRequired[EstimateSlo | None],
        "step": EstimateBreakdown,
        "together": float,
        "usd_per_mtok_input": NotRequired[float | None],
    },
)

EstimatePartGrade = TypedDict(
    "EstimatePartGrade",
    {
        "grade": Any,
        "part": str,
        "says": Any,
    },
)

EstimateCarried = TypedDict(
    "EstimateCarried",
    {
        "from": NotRequired[str | None],
        "step": str,
        "what": str,
    },
)

EstimateFactors = TypedDict(
    "EstimateFactors",
    {
        "throughput": float,
        "tpot": float,
        "ttft": float,
    },
)

EstimateEvidence = TypedDict(
    "EstimateEvidence",
    {
        "chip": str,
        "engine": str,
        "grade": Any,
        "model": str,
        "off": NotRequired[float | None],
        "parts": list[EstimatePartGrade],
        "rows": int,
        "says": Any,
        "steps": list[EstimateCarried],
        "within": EstimateFactors,
    },
)

EstimateLoraCard = TypedDict(
    "EstimateLoraCard",
    {
        "base_output_tok_s": float,
        "base_room": float,
        "base_tpot_ms": float,
        "caution": NotRequired[Any],
        "chip_bytes": float,
        "distinct": float,
        "hit": float,
        "launches": float,
        "load_disk_ms": float,
        "load_ms": float,
        "load_per_request_ms": float,
        "most_slots": NotRequired[int | None],
        "params": float,
        "rank": int,
        "says": Any,
        "served": int,
        "slots": int,
        "slots_bytes": float,
        "stored_bytes": float,
        "throughput_less": float,
        "tpot_more": float,
    },
)

EstimateEncoderPool = TypedDict(
    "EstimateEncoderPool",
    {
        "balanced_chips": float,
        "busy": float,
        "chips": float,
        "send_ms": float,
        "wait_ms": float,
    },
)

EstimateBrought = TypedDict(
    "EstimateBrought",
    {
        "encode_ms": float,
        "encoder_bytes": float,
        "encoder_params": float,
        "encoders": NotRequired[EstimateEncoderPool | None],
        "patches": float,
        "picture_tokens": float,
        "says": Any,
        "sound_tokens": float,
        "text_tokens": float,
    },
)

EstimateCardHeld = TypedDict(
    "EstimateCardHeld",
    {
        "card": str,
        "held_bytes": float,
        "layers": float,
        "room_bytes": float,
    },
)

EstimateOffloadCard = TypedDict(
    "EstimateOffloadCard",
    {
        "cards": list[EstimateCardHeld],
        "expert_layers_on_host": float,
        "from_disk": NotRequired[float | None],
        "host": str,
        "host_bandwidth_gb_per_s": float,
        "host_kv_bytes": float,
        "host_memory_bytes": float,
        "host_weight_bytes": float,
        "layers": int,
        "layers_on_host": float,
        "link_gb_per_s": float,
        "says": Any,
    },
)

EstimatePools = TypedDict(
    "EstimatePools",
    {
        "balanced_ratio": float,
        "decode_chips": int,
        "network": Any,
        "prefill_busy": float,
        "prefill_chips": int,
        "prefill_instances": float,
        "prefill_layout": str,
        "prefill_ms": float,
        "prefill_wait_ms": float,
        "transfer_bytes": float,
        "transfer_ms": float,
    },
)

EstimateProblem = TypedDict(
    "EstimateProblem",
    {
        "first_change": NotRequired[Any],
        "holds_requests_per_s": NotRequired[float | None],
        "missing_bytes": NotRequired[float | None],
        "most_requests_per_s": NotRequired[float | None],
        "what": Any,
    },
)

EstimateServed = TypedDict(
    "EstimateServed",
    {
        "binding": Any,
        "decoding": float,
        "e2e_ms": NotRequired[EstimateRange | None],
        "output_tok_s": EstimateRange,
        "output_tok_s_per_chip": EstimateRange,
        "output_tok_s_per_user": EstimateRange,
        "percentiles": NotRequired[EstimatePercentiles | None],
        "prompt_share": float,
        "prompt_tokens": float,
        "queue_ms": NotRequired[EstimateRange | None],
        "reading": Any,
        "requests_per_s": EstimateRange,
        "room": float,
        "running": float,
        "slo": NotRequired[EstimateSlo | None],
        "step": EstimateBreakdown,
        "tpot_ms": EstimateRange,
        "ttft_ms": NotRequired[EstimateRange | None],
        "ttft_unqueued_ms": NotRequired[EstimateRange | None],
        "usd_per_mtok_input": NotRequired[float | None],
        "usd_per_mtok_output": NotRequired[float | None],
        "waiting": float,
    },
)

EstimateTarget = TypedDict(
    "EstimateTarget",
    {
        "limit_ms": float,
        "percentile": NotRequired[float | None],
        "value_ms": NotRequired[float | None],
        "what": Any,
    },
)

EstimatePoint = TypedDict(
    "EstimatePoint",
    {
        "at": float,
        "meets": bool,
        "misses": list[Any],
        "requests_per_s": float,
        "targets": list[EstimateTarget],
        "tpot_ms": NotRequired[float | None],
        "ttft_ms": NotRequired[float | None],
        "waiting": float,
    },
)

EstimateMachineCard = TypedDict(
    "EstimateMachineCard",
    {
        "chips": int,
        "layout": str,
        "machine": str,
        "on": str,
        "point": EstimatePoint,
        "usd_per_hour": NotRequired[float | None],
    },
)

EstimateSolved = TypedDict(
    "EstimateSolved",
    {
        "again": NotRequired[float | None],
        "at": NotRequired[EstimatePoint | None],
        "binds": NotRequired[Any],
        "how": Any,
        "machines": list[EstimateMachineCard],
        "next": NotRequired[EstimatePoint | None],
        "step": float,
        "unknown": Any,
        "value": NotRequired[float | None],
        "verdict": Any,
    },
)

EstimateSpeculated = TypedDict(
    "EstimateSpeculated",
    {
        "acceptance": Any,
        "accepted": float,
        "best_drafts": int,
        "drafter": Any,
        "drafts": float,
        "looked_up_to": int,
        "loses_from": NotRequired[int | None],
        "request_gain": float,
        "speedup": float,
        "throughput_gain": float,
        "throughput_loses_from": NotRequired[int | None],
        "tpot_without_ms": float,
        "verdict": Any,
        "weight_bytes_per_chip": float,
        "why": NotRequired[Any],
    },
)

EstimateData = TypedDict(
    "EstimateData",
    {
        "assumptions": list[Any],
        "changes": list[EstimateChange],
        "chips": int,
        "chips_available": int,
        "embedding": NotRequired[EstimateEmbedded | None],
        "engine": str,
        "engine_id": str,
        "evidence": NotRequired[EstimateEvidence | None],
        "isl": float,
        "kv": Any,
        "layout": str,
        "layout_chosen": bool,
        "load": Any,
        "loras": NotRequired[EstimateLoraCard | None],
        "media": NotRequired[EstimateBrought | None],
        "model": str,
        "offload": NotRequired[EstimateOffloadCard | None],
        "osl": float,
        "pools": NotRequired[EstimatePools | None],
        "pretended": NotRequired[Any],
        "problem": NotRequired[EstimateProblem | None],
        "schema": NotRequired[int],
        "served": NotRequired[EstimateServed | None],
        "solved": NotRequired[EstimateSolved | None],
        "sources": list[Any],
        "speculation": NotRequired[EstimateSpeculated | None],
        "system": str,
        "weights": Any,
    },
)

def estimate(
    model: str | PathLike[str] | Mapping[str, Any] | None = ...,
    *,
    embed: bool | None = ...,
    enforce_eager: bool | None = ...,
    fully_sharded_loras: bool | None = ...,
    lora_count: int | str | None = ...,
    lora_rank: int | str | None = ...,
    lora_skew: float | str | None = ...,
    lora_targets: Literal["all", "attention", "qv", "mlp", "all-linear", "attn", "ffn"] | None = ...,
    loras: int | str | None = ...,
    max_cpu_loras: int | str | None = ...,
    audio: float | str | None = ...,
    encoder_chips: int | str | None = ...,
    mm_encoder_tp_mode: Literal["weights", "data"] | None = ...,
    frames: int | str | None = ...,
    image_size: str | None = ...,
    images: int | str | None = ...,
    pretend: bool | None = ...,
    solve: Literal["concurrency", "rate", "users", "context", "machine"] | None = ...,
    think: float | str | None = ...,
    users: float | str | None = ...,
    on: str | PathLike[str] | Mapping[str, Any] | None = ...,
    chips: int | str | None = ...,
    link: str | None = ...,
    quantization: str | None = ...,
    kv_cache_dtype: str | None = ...,
    compute_dtype: str | None = ...,
    counting: Literal["strict", "lecture"] | None = ...,
    overlap: str | None = ...,
    price: float | str | None = ...,
    basis: Literal["owner-hyperscaler", "owner-neocloud", "rental", "on-demand", "spot", "owner", "contract", "reserved"] | None = ...,
    dcp: int | str | None = ...,
    tp: int | str | None = ...,
    pp: int | str | None = ...,
    dp: int | str | None = ...,
    cp: int | str | None = ...,
    ep: int | str | None = ...,
    etp: int | str | None = ...,
    redundant_experts: int | str | None = ...,
    flags: str | None = ...,
    tool: Literal["vllm", "sglang", "trtllm", "megatron", "tensorrt-llm", "tensorrt_llm", "tensorrtllm", "trt-llm", "trt_llm", "trt", "megatron-lm", "megatronlm", "nemo"] | None = ...,
    engine: str | None = ...,
    concurrency: float | str | None = ...,
    rate: float | str | None = ...,
    max_load: bool | None = ...,
    isl: float | str | None = ...,
    osl: float | str | None = ...,
    prefix_hit: float | str | None = ...,
    acceptance: float | str | None = ...,
    accepted: float | str | None = ...,
    draft_tp: int | str | None = ...,
    drafter: str | PathLike[str] | Mapping[str, Any] | None = ...,
    drafts: Any = ...,
    workload: Literal["chat", "code", "math", "summary", "agent", "repetitive", "any"] | None = ...,
    max_num_batched_tokens: float | str | None = ...,
    max_num_seqs: float | str | None = ...,
    gpu_memory_utilization: float | str | None = ...,
    ttft: float | str | None = ...,
    tpot: float | str | None = ...,
    e2e: float | str | None = ...,
    disaggregated: bool | str | Mapping[str, Any] | None = ...,
    prefill_cp: int | str | None = ...,
    prefill_dcp: int | str | None = ...,
    prefill_dp: int | str | None = ...,
    prefill_ep: int | str | None = ...,
    prefill_etp: int | str | None = ...,
    prefill_pp: int | str | None = ...,
    prefill_redundant_experts: int | str | None = ...,
    prefill_tp: int | str | None = ...,
    prefill_chips: int | str | None = ...,
    cpu_moe: bool | None = ...,
    ngl: int | str | None = ...,
    offload_layers: int | str | None = ...,
    n_cpu_moe: int | str | None = ...,
    cpu_offload_gb: float | str | None = ...,
    host: str | None = ...,
    host_memory: float | str | None = ...,
    host_bandwidth: float | str | None = ...,
    host_link: float | str | None = ...,
    tensor_split: str | Sequence[float | str] | None = ...,
    disk: float | str | None = ...,
    no_changes: bool | None = ...,
    files: Mapping[str, str | Mapping[str, Any]] | None = ...,
    catalog: str | PathLike[str] | Catalog | None = ...,
) -> Answer[EstimateData]:
    """What a server delivers: speed, waiting, throughput, cost, what binds, and what would help

    embed: Whether a vector or a score is wanted instead of an answer, as from embedding models; so it is with osl 0.
    enforce_eager: Captures no graphs: the host launches every kernel.
    fully_sharded_loras: Whether tensor parallelism cuts both factors of an adapter, not one.
    lora_count: Adapters that requests ask for in all.
    lora_rank: Largest rank of an adapter: every slot is as large.
    lora_skew: How unevenly they are asked for: the j-th in proportion to j to the power of minus this; 0 is evenly.
    lora_targets: Beside which matrices they stand.
    loras: Adapters (LoRA) that a chip holds at once and a batch may mix.
    max_cpu_loras: Adapters kept in the host's memory; others come from disk.
    audio: Sound of a request.
    encoder_chips: Chips that do nothing but encode; 0 for as many as balance the others.
    mm_encoder_tp_mode: Whether the encoder is cut over the chips of a tensor-parallel group, or each has a copy and takes other pictures.
    frames: Frames of a film in a request.
    image_size: Their size in pixels, width x height, such as 1280x960; that of frames too.
    images: Pictures of a request.
    pretend: Computes what the engine, the chip or the model's context do not allow, and says that it does not exist.
    solve: What to solve for, such that the targets are met.
    think: Time a user takes between an answer and the next request; none unless given.
    users: Users instead of requests in flight: each asks again some time after the last token of an answer.
    model: Model: a catalogue name, a Hugging Face id, or the path of a config.json, of a folder holding one, or of a model .toml.
    on: Machine: a system, a chip, so many chips such as 8xh200, or the path of a chip or system .toml; with the price of a chip and hour in dollars behind an @ where the catalogue's is not meant, such as 8xh100@2.10.
    chips: Use this many chips of the machine instead of all.
    link: Join its chips by this link instead of their own: a rate one way out of each chip such as 25GB/s or 200Gb/s, a kind such as pcie4, pcie4 x8, 10GbE, nvlink (the bridge for two cards), a kind and its rate such as nvlink4:450GB/s, or ideal.
    quantization: Weight format: bf16, fp8, mxfp8, nvfp4, mxfp4, int4 and others.
    kv_cache_dtype: KV-cache format.
    compute_dtype: Arithmetic to compute in: bf16, fp8, fp4, int8 and others.
    counting: What is counted; lecture: no attention arithmetic, every weight read in every step.
    overlap: max, sum, kv+max (scaling book), or a share from 0 (none) to 1 (perfect).
    price: Price of a chip and hour, such as 2.10/h.
    basis: Whose price.
    dcp: Decode context parallel: chips of a tensor-parallel group that share the tokens of a cache.
    tp: Tensor parallel.
    pp: Pipeline parallel.
    dp: Data parallel.
    cp: Context parallel.
    ep: Expert parallel.
    etp: Expert tensor parallel.
    redundant_experts: Redundant experts per layer.
    flags: A command line or flags of vLLM, SGLang, TensorRT-LLM or llama.cpp: layout, formats, schedule and memory are obeyed, and what is not is said; of Megatron the layout alone.
    tool: Whose command line it is; the engine follows it unless another is said.
    engine: The engine, with a version where it matters: vllm, sglang, trtllm, vllm@0.19.0, ideal; auto is llama.cpp for GGUF files and on Apple's chips, and vLLM elsewhere.
    concurrency: Requests in flight over all groups.
    rate: Requests per second at random, instead.
    max_load: As many requests as memory and the engine hold, instead.
    isl: Tokens of a prompt, mean.
    osl: Tokens of an answer, mean.
    prefix_hit: Share of a prompt found in the prefix cache, 0 to 1.
    acceptance: Chance that a draft is accepted when all before it were, instead.
    accepted: Tokens a step yields, the checked one included.
    draft_tp: Chips a draft model is cut over.
    drafter: Who drafts: mtp (the model's own layers), eagle3 (a head of one layer), ngram (a look-up in the text), or a smaller model by its name.
    drafts: Tokens drafted for each sequence and step, or auto for as many as are best.
    workload: What is written: how often drafts hold then, as published, where no acceptance is given.
    max_num_batched_tokens: Most tokens in a pass.
    max_num_seqs: Most sequences that decode together, per group.
    gpu_memory_utilization: Share of a chip's memory the engine takes.
    ttft: Time to first token that is good enough: a mean as 1s, a percentile as p90=1s.
    tpot: Time per output token that is good enough: a mean as 30ms, a percentile as p99=50ms.
    e2e: Time of a whole request that is good enough: a mean or a percentile.
    disaggregated: Prompts on chips of their own; the layout above is that of the decoding ones.
    prefill_cp: Context parallel.
    prefill_dcp: Decode context parallel: chips of a tensor-parallel group that share the tokens of a cache.
    prefill_dp: Data parallel.
    prefill_ep: Expert parallel.
    prefill_etp: Expert tensor parallel.
    prefill_pp: Pipeline parallel.
    prefill_redundant_experts: Redundant experts per layer.
    prefill_tp: Tensor parallel.
    prefill_chips: Chips that compute prompts; as many as balance the decoding ones unless given.
    cpu_moe: All experts lie in the host's memory.
    ngl: Layers on the card as llama.cpp counts them, the output being one more; the others lie in the host's memory (-ngl).
    offload_layers: Layers in the host's memory, instead.
    n_cpu_moe: Layers, from the first on, whose experts lie in the host's memory.
    cpu_offload_gb: GiB of each chip's weights that lie in the host's memory and are sent in every pass, as vLLM and SGLang count.
    host: The host: a processor of the catalogue, such as epyc-9654 or ryzen-9-7950x.
    host_memory: Memory of the host, such as 512 GB.
    host_bandwidth: Bandwidth of that memory, such as 400 GB/s.
    host_link: The link between host and card one way, such as 32 GB/s.
    tensor_split: Shares of the model on cards joined by +, in their order, such as 3,1 (--tensor-split).
    disk: Rate of the disk that weights come from where the host's memory is too small for them (mmap), such as 5 GB/s.
    no_changes: Whether to try changes.
    """

EstimateSweepMark = TypedDict(
    "EstimateSweepMark",
    {
        "label": Any,
        "x": float,
        "y": float,
    },
)

EstimateSweepSeries = TypedDict(
    "EstimateSweepSeries",
    {
        "name": Any,
        "points": list[list[Any]],
        "role": Any,
    },
)

EstimateSweepAxis = TypedDict(
    "EstimateSweepAxis",
    {
        "label": str,
        "scale": Any,
        "unit": Any,
    },
)

EstimateSweepFigure = TypedDict(
    "EstimateSweepFigure",
    {
        "marks": list[EstimateSweepMark],
        "series": list[EstimateSweepSeries],
        "subtitle": Any,
        "title": Any,
        "x": EstimateSweepAxis,
        "y": EstimateSweepAxis,
    },
)

EstimateSweepProblem = TypedDict(
    "EstimateSweepProblem",
    {
        "first_change": NotRequired[Any],
        "holds_requests_per_s": NotRequired[float | None],
        "missing_bytes": NotRequired[float | None],
        "most_requests_per_s": NotRequired[float | None],
        "what": Any,
    },
)

EstimateSweepRow = TypedDict(
    "EstimateSweepRow",
    {
        "binding": str,
        "concurrency": float,
        "e2e_ms": float,
        "of_limit": float,
        "output_tok_s_per_chip": float,
        "output_tok_s_per_user": float,
        "requests_per_s": float,
        "tpot_ms": float,
        "ttft_ms": float,
        "usd_per_mtok_output": NotRequired[float | None],
        "waiting": float,
    },
)

EstimateSweepSpeculated = TypedDict(
    "EstimateSweepSpeculated",
    {
        "acceptance": Any,
        "accepted": float,
        "best_drafts": int,
        "drafter": Any,
        "drafts": float,
        "looked_up_to": int,
        "loses_from": NotRequired[int | None],
        "request_gain": float,
        "speedup": float,
        "throughput_gain": float,
        "throughput_loses_from": NotRequired[int | None],
        "tpot_without_ms": float,
        "verdict": Any,
        "weight_bytes_per_chip": float,
        "why": NotRequired[Any],
    },
)

EstimateSweepData = TypedDict(
    "EstimateSweepData",
    {
        "assumptions": list[Any],
        "engine": str,
        "figure": EstimateSweepFigure,
        "layout": str,
        "model": str,
        "problem": NotRequired[EstimateSweepProblem | None],
        "rows": list[EstimateSweepRow],
        "schema": NotRequired[int],
        "speculation": NotRequired[EstimateSweepSpeculated | None],
        "system": str,
    },
)

def estimate_sweep(
    model: str | PathLike[str] | Mapping[str, Any] | None = ...,
    *,
    embed: bool | None = ...,
    enforce_eager: bool | None = ...,
    fully_sharded_loras: bool | None = ...,
    lora_count: int | str | None = ...,
    lora_rank: int | str | None = ...,
    lora_skew: float | str | None = ...,
    lora_targets: Literal["all", "attention", "qv", "mlp", "all-linear", "attn", "ffn"] | None = ...,
    loras: int | str | None = ...,
    max_cpu_loras: int | str | None = ...,
    audio: float | str | None = ...,
    encoder_chips: int | str | None = ...,
    mm_encoder_tp_mode: Literal["weights", "data"] | None = ...,
    frames: int | str | None = ...,
    image_size: str | None = ...,
    images: int | str | None = ...,
    pretend: bool | None = ...,
    solve: Literal["concurrency", "rate", "users", "context", "machine"] | None = ...,
    think: float | str | None = ...,
    users: float | str | None = ...,
    on: str | PathLike[str] | Mapping[str, Any] | None = ...,
    chips: int | str | None = ...,
    link: str | None = ...,
    quantization: str | None = ...,
    kv_cache_dtype: str | None = ...,
    compute_dtype: str | None = ...,
    counting: Literal["strict", "lecture"] | None = ...,
    overlap: str | None = ...,
    price: float | str | None = ...,
    basis: Literal["owner-hyperscaler", "owner-neocloud", "rental", "on-demand", "spot", "owner", "contract", "reserved"] | None = ...,
    dcp: int | str | None = ...,
    tp: int | str | None = ...,
    pp: int | str | None = ...,
    dp: int | str | None = ...,
    cp: int | str | None = ...,
    ep: int | str | None = ...,
    etp: int | str | None = ...,
    redundant_experts: int | str | None = ...,
    flags: str | None = ...,
    tool: Literal["vllm", "sglang", "trtllm", "megatron", "tensorrt-llm", "tensorrt_llm", "tensorrtllm", "trt-llm", "trt_llm", "trt", "megatron-lm", "megatronlm", "nemo"] | None = ...,
    engine: str | None = ...,
    concurrency: float | str | None = ...,
    rate: float | str | None = ...,
    max_load: bool | None = ...,
    isl: float | str | None = ...,
    osl: float | str | None = ...,
    prefix_hit: float | str | None = ...,
    acceptance: float | str | None = ...,
    accepted: float | str | None = ...,
    draft_tp: int | str | None = ...,
    drafter: str | PathLike[str] | Mapping[str, Any] | None = ...,
    drafts: Any = ...,
    workload: Literal["chat", "code", "math", "summary", "agent", "repetitive", "any"] | None = ...,
    max_num_batched_tokens: float | str | None = ...,
    max_num_seqs: float | str | None = ...,
    gpu_memory_utilization: float | str | None = ...,
    ttft: float | str | None = ...,
    tpot: float | str | None = ...,
    e2e: float | str | None = ...,
    disaggregated: bool | str | Mapping[str, Any] | None = ...,
    prefill_cp: int | str | None = ...,
    prefill_dcp: int | str | None = ...,
    prefill_dp: int | str | None = ...,
    prefill_ep: int | str | None = ...,
    prefill_etp: int | str | None = ...,
    prefill_pp: int | str | None = ...,
    prefill_redundant_experts: int | str | None = ...,
    prefill_tp: int | str | None = ...,
    prefill_chips: int | str | None = ...,
    cpu_moe: bool | None = ...,
    ngl: int | str | None = ...,
    offload_layers: int | str | None = ...,
    n_cpu_moe: int | str | None = ...,
    cpu_offload_gb: float | str | None = ...,
    host: str | None = ...,
    host_memory: float | str | None = ...,
    host_bandwidth: float | str | None = ...,
    host_link: float | str | None = ...,
    tensor_split: str | Sequence[float | str] | None = ...,
    disk: float | str | None = ...,
    no_changes: bool | None = ...,
    from_: float | str | None = ...,
    to: float | str | None = ...,
    points: int | str | None = ...,
    files: Mapping[str, str | Mapping[str, Any]] | None = ...,
    catalog: str | PathLike[str] | Catalog | None = ...,
) -> Answer[EstimateSweepData]:
    """The curve of an estimate over concurrency: what a user gets against what a chip yields

    embed: Whether a vector or a score is wanted instead of an answer, as from embedding models; so it is with osl 0.
    enforce_eager: Captures no graphs: the host launches every kernel.
    fully_sharded_loras: Whether tensor parallelism cuts both factors of an adapter, not one.
    lora_count: Adapters that requests ask for in all.
    lora_rank: Largest rank of an adapter: every slot is as large.
    lora_skew: How unevenly they are asked for: the j-th in proportion to j to the power of minus this; 0 is evenly.
    lora_targets: Beside which matrices they stand.
    loras: Adapters (LoRA) that a chip holds at once and a batch may mix.
    max_cpu_loras: Adapters kept in the host's memory; others come from disk.
    audio: Sound of a request.
    encoder_chips: Chips that do nothing but encode; 0 for as many as balance the others.
    mm_encoder_tp_mode: Whether the encoder is cut over the chips of a tensor-parallel group, or each has a copy and takes other pictures.
    frames: Frames of a film in a request.
    image_size: Their size in pixels, width x height, such as 1280x960; that of frames too.
    images: Pictures of a request.
    pretend: Computes what the engine, the chip or the model's context do not allow, and says that it does not exist.
    solve: What to solve for, such that the targets are met.
    think: Time a user takes between an answer and the next request; none unless given.
    users: Users instead of requests in flight: each asks again some time after the last token of an answer.
    model: Model: a catalogue name, a Hugging Face id, or the path of a config.json, of a folder holding one, or of a model .toml.
    on: Machine: a system, a chip, so many chips such as 8xh200, or the path of a chip or system .toml; with the price of a chip and hour in dollars behind an @ where the catalogue's is not meant, such as 8xh100@2.10.
    chips: Use this many chips of the machine instead of all.
    link: Join its chips by this link instead of their own: a rate one way out of each chip such as 25GB/s or 200Gb/s, a kind such as pcie4, pcie4 x8, 10GbE, nvlink (the bridge for two cards), a kind and its rate such as nvlink4:450GB/s, or ideal.
    quantization: Weight format: bf16, fp8, mxfp8, nvfp4, mxfp4, int4 and others.
    kv_cache_dtype: KV-cache format.
    compute_dtype: Arithmetic to compute in: bf16, fp8, fp4, int8 and others.
    counting: What is counted; lecture: no attention arithmetic, every weight read in every step.
    overlap: max, sum, kv+max (scaling book), or a share from 0 (none) to 1 (perfect).
    price: Price of a chip and hour, such as 2.10/h.
    basis: Whose price.
    dcp: Decode context parallel: chips of a tensor-parallel group that share the tokens of a cache.
    tp: Tensor parallel.
    pp: Pipeline parallel.
    dp: Data parallel.
    cp: Context parallel.
    ep: Expert parallel.
    etp: Expert tensor parallel.
    redundant_experts: Redundant experts per layer.
    flags: A command line or flags of vLLM, SGLang, TensorRT-LLM or llama.cpp: layout, formats, schedule and memory are obeyed, and what is not is said; of Megatron the layout alone.
    tool: Whose command line it is; the engine follows it unless another is said.
    engine: The engine, with a version where it matters: vllm, sglang, trtllm, vllm@0.19.0, ideal; auto is llama.cpp for GGUF files and on Apple's chips, and vLLM elsewhere.
    concurrency: Requests in flight over all groups.
    rate: Requests per second at random, instead.
    max_load: As many requests as memory and the engine hold, instead.
    isl: Tokens of a prompt, mean.
    osl: Tokens of an answer, mean.
    prefix_hit: Share of a prompt found in the prefix cache, 0 to 1.
    acceptance: Chance that a draft is accepted when all before it were, instead.
    accepted: Tokens a step yields, the checked one included.
    draft_tp: Chips a draft model is cut over.
    drafter: Who drafts: mtp (the model's own layers), eagle3 (a head of one layer), ngram (a look-up in the text), or a smaller model by its name.
    drafts: Tokens drafted for each sequence and step, or auto for as many as are best.
    workload: What is written: how often drafts hold then, as published, where no acceptance is given.
    max_num_batched_tokens: Most tokens in a pass.
    max_num_seqs: Most sequences that decode together, per group.
    gpu_memory_utilization: Share of a chip's memory the engine takes.
    ttft: Time to first token that is good enough: a mean as 1s, a percentile as p90=1s.
    tpot: Time per output token that is good enough: a mean as 30ms, a percentile as p99=50ms.
    e2e: Time of a whole request that is good enough: a mean or a percentile.
    disaggregated: Prompts on chips of their own; the layout above is that of the decoding ones.
    prefill_cp: Context parallel.
    prefill_dcp: Decode context parallel: chips of a tensor-parallel group that share the tokens of a cache.
    prefill_dp: Data parallel.
    prefill_ep: Expert parallel.
    prefill_etp: Expert tensor parallel.
    prefill_pp: Pipeline parallel.
    prefill_redundant_experts: Redundant experts per layer.
    prefill_tp: Tensor parallel.
    prefill_chips: Chips that compute prompts; as many as balance the decoding ones unless given.
    cpu_moe: All experts lie in the host's memory.
    ngl: Layers on the card as llama.cpp counts them, the output being one more; the others lie in the host's memory (-ngl).
    offload_layers: Layers in the host's memory, instead.
    n_cpu_moe: Layers, from the first on, whose experts lie in the host's memory.
    cpu_offload_gb: GiB of each chip's weights that lie in the host's memory and are sent in every pass, as vLLM and SGLang count.
    host: The host: a processor of the catalogue, such as epyc-9654 or ryzen-9-7950x.
    host_memory: Memory of the host, such as 512 GB.
    host_bandwidth: Bandwidth of that memory, such as 400 GB/s.
    host_link: The link between host and card one way, such as 32 GB/s.
    tensor_split: Shares of the model on cards joined by +, in their order, such as 3,1 (--tensor-split).
    disk: Rate of the disk that weights come from where the host's memory is too small for them (mmap), such as 5 GB/s.
    no_changes: Whether to try changes.
    from_: Fewest requests in flight.
    to: Most.
    points: Points, spaced by equal factors.
    """

CapacityCapacity = TypedDict(
    "CapacityCapacity",
    {
        "cache_tokens": float,
        "decode_tok_s": float,
        "kept": float,
        "prefill_tok_s": float,
        "prompts_per_s": float,
        "requests_per_s": NotRequired[float | None],
        "running": float,
        "sequences": float,
        "startup_s": float,
        "usd_per_hour": NotRequired[float | None],
    },
)

CapacityTarget = TypedDict(
    "CapacityTarget",
    {
        "limit_ms": float,
        "percentile": NotRequired[float | None],
        "value_ms": NotRequired[float | None],
        "what": Any,
    },
)

CapacityPoint = TypedDict(
    "CapacityPoint",
    {
        "at": float,
        "meets": bool,
        "misses": list[Any],
        "requests_per_s": float,
        "targets": list[CapacityTarget],
        "tpot_ms": NotRequired[float | None],
        "ttft_ms": NotRequired[float | None],
        "waiting": float,
    },
)

CapacityMachineCard = TypedDict(
    "CapacityMachineCard",
    {
        "chips": int,
        "layout": str,
        "machine": str,
        "on": str,
        "point": CapacityPoint,
        "usd_per_hour": NotRequired[float | None],
    },
)

CapacitySolved = TypedDict(
    "CapacitySolved",
    {
        "again": NotRequired[float | None],
        "at": NotRequired[CapacityPoint | None],
        "binds": NotRequired[Any],
        "how": Any,
        "machines": list[CapacityMachineCard],
        "next": NotRequired[CapacityPoint | None],
        "step": float,
        "unknown": Any,
        "value": NotRequired[float | None],
        "verdict": Any,
    },
)

CapacityFile = TypedDict(
    "CapacityFile",
    {
        "name": str,
        "text": str,
    },
)

CapacityThreshold = TypedDict(
    "CapacityThreshold",
    {
        "chips": int,
        "kv_use": NotRequired[float | None],
        "pool": Any,
        "requests_per_s": NotRequired[float | None],
        "running": NotRequired[float | None],
        "tokens": float,
        "waiting": float,
    },
)

CapacityData = TypedDict(
    "CapacityData",
    {
        "assumptions": list[Any],
        "capacity": NotRequired[CapacityCapacity | None],
        "chips": int,
        "concurrency": NotRequired[CapacitySolved | None],
        "engine": str,
        "files": list[CapacityFile],
        "isl": float,
        "layout": str,
        "model": str,
        "osl": float,
        "rate": NotRequired[CapacitySolved | None],
        "schema": NotRequired[int],
        "sources": list[Any],
        "system": str,
        "thresholds": list[CapacityThreshold],
        "verdict": Any,
    },
)

def capacity(
    model: str | PathLike[str] | Mapping[str, Any] | None = ...,
    *,
    embed: bool | None = ...,
    enforce_eager: bool | None = ...,
    fully_sharded_loras: bool | None = ...,
    lora_count: int | str | None = ...,
    lora_rank: int | str | None = ...,
    lora_skew: float | str | None = ...,
    lora_targets: Literal["all", "attention", "qv", "mlp", "all-linear", "attn", "ffn"] | None = ...,
    loras: int | str | None = ...,
    max_cpu_loras: int | str | None = ...,
    audio: float | str | None = ...,
    encoder_chips: int | str | None = ...,
    mm_encoder_tp_mode: Literal["weights", "data"] | None = ...,
    frames: int | str | None = ...,
    image_size: str | None = ...,
    images: int | str | None = ...,
    pretend: bool | None = ...,
    on: str | PathLike[str] | Mapping[str, Any] | None = ...,
    chips: int | str | None = ...,
    link: str | None = ...,
    quantization: str | None = ...,
    kv_cache_dtype: str | None = ...,
    compute_dtype: str | None = ...,
    counting: Literal["strict", "lecture"] | None = ...,
    overlap: str | None = ...,
    price: float | str | None = ...,
    basis: Literal["owner-hyperscaler", "owner-neocloud", "rental", "on-demand", "spot", "owner", "contract", "reserved"] | None = ...,
    dcp: int | str | None = ...,
    tp: int | str | None = ...,
    pp: int | str | None = ...,
    dp: int | str | None = ...,
    cp: int | str | None = ...,
    ep: int | str | None = ...,
    etp: int | str | None = ...,
    redundant_experts: int | str | None = ...,
    flags: str | None = ...,
    tool: Literal["vllm", "sglang", "trtllm", "megatron", "tensorrt-llm", "tensorrt_llm", "tensorrtllm", "trt-llm", "trt_llm", "trt", "megatron-lm", "megatronlm", "nemo"] | None = ...,
    engine: str | None = ...,
    isl: float | str | None = ...,
    osl: float | str | None = ...,
    prefix_hit: float | str | None = ...,
    acceptance: float | str | None = ...,
    accepted: float | str | None = ...,
    draft_tp: int | str | None = ...,
    drafter: str | PathLike[str] | Mapping[str, Any] | None = ...,
    drafts: Any = ...,
    workload: Literal["chat", "code", "math", "summary", "agent", "repetitive", "any"] | None = ...,
    max_num_batched_tokens: float | str | None = ...,
    max_num_seqs: float | str | None = ...,
    gpu_memory_utilization: float | str | None = ...,
    ttft: float | str | None = ...,
    tpot: float | str | None = ...,
    e2e: float | str | None = ...,
    disaggregated: bool | str | Mapping[str, Any] | None = ...,
    prefill_cp: int | str | None = ...,
    prefill_dcp: int | str | None = ...,
    prefill_dp: int | str | None = ...,
    prefill_ep: int | str | None = ...,
    prefill_etp: int | str | None = ...,
    prefill_pp: int | str | None = ...,
    prefill_redundant_experts: int | str | None = ...,
    prefill_tp: int | str | None = ...,
    prefill_chips: int | str | None = ...,
    cpu_moe: bool | None = ...,
    ngl: int | str | None = ...,
    offload_layers: int | str | None = ...,
    n_cpu_moe: int | str | None = ...,
    cpu_offload_gb: float | str | None = ...,
    host: str | None = ...,
    host_memory: float | str | None = ...,
    host_bandwidth: float | str | None = ...,
    host_link: float | str | None = ...,
    tensor_split: str | Sequence[float | str] | None = ...,
    disk: float | str | None = ...,
    startup: float | str | None = ...,
    growth: float | str | None = ...,
    min_replicas: int | str | None = ...,
    max_replicas: int | str | None = ...,
    name: str | None = ...,
    namespace: str | None = ...,
    prometheus: str | None = ...,
    files: Mapping[str, str | Mapping[str, Any]] | None = ...,
    catalog: str | PathLike[str] | Catalog | None = ...,
) -> Answer[CapacityData]:
    """What one replica carries, for autoscalers: cache, work, thresholds, and values as files

    embed: Whether a vector or a score is wanted instead of an answer, as from embedding models; so it is with osl 0.
    enforce_eager: Captures no graphs: the host launches every kernel.
    fully_sharded_loras: Whether tensor parallelism cuts both factors of an adapter, not one.
    lora_count: Adapters that requests ask for in all.
    lora_rank: Largest rank of an adapter: every slot is as large.
    lora_skew: How unevenly they are asked for: the j-th in proportion to j to the power of minus this; 0 is evenly.
    lora_targets: Beside which matrices they stand.
    loras: Adapters (LoRA) that a chip holds at once and a batch may mix.
    max_cpu_loras: Adapters kept in the host's memory; others come from disk.
    audio: Sound of a request.
    encoder_chips: Chips that do nothing but encode; 0 for as many as balance the others.
    mm_encoder_tp_mode: Whether the encoder is cut over the chips of a tensor-parallel group, or each has a copy and takes other pictures.
    frames: Frames of a film in a request.
    image_size: Their size in pixels, width x height, such as 1280x960; that of frames too.
    images: Pictures of a request.
    pretend: Computes what the engine, the chip or the model's context do not allow, and says that it does not exist.
    model: Model: a catalogue name, a Hugging Face id, or the path of a config.json, of a folder holding one, or of a model .toml.
    on: Machine: a system, a chip, so many chips such as 8xh200, or the path of a chip or system .toml; with the price of a chip and hour in dollars behind an @ where the catalogue's is not meant, such as 8xh100@2.10.
    chips: Use this many chips of the machine instead of all.
    link: Join its chips by this link instead of their own: a rate one way out of each chip such as 25GB/s or 200Gb/s, a kind such as pcie4, pcie4 x8, 10GbE, nvlink (the bridge for two cards), a kind and its rate such as nvlink4:450GB/s, or ideal.
    quantization: Weight format: bf16, fp8, mxfp8, nvfp4, mxfp4, int4 and others.
    kv_cache_dtype: KV-cache format.
    compute_dtype: Arithmetic to compute in: bf16, fp8, fp4, int8 and others.
    counting: What is counted; lecture: no attention arithmetic, every weight read in every step.
    overlap: max, sum, kv+max (scaling book), or a share from 0 (none) to 1 (perfect).
    price: Price of a chip and hour, such as 2.10/h.
    basis: Whose price.
    dcp: Decode context parallel: chips of a tensor-parallel group that share the tokens of a cache.
    tp: Tensor parallel.
    pp: Pipeline parallel.
    dp: Data parallel.
    cp: Context parallel.
    ep: Expert parallel.
    etp: Expert tensor parallel.
    redundant_experts: Redundant experts per layer.
    flags: A command line or flags of vLLM, SGLang, TensorRT-LLM or llama.cpp: layout, formats, schedule and memory are obeyed, and what is not is said; of Megatron the layout alone.
    tool: Whose command line it is; the engine follows it unless another is said.
    engine: The engine, with a version where it matters: vllm, sglang, trtllm, vllm@0.19.0, ideal; auto is llama.cpp for GGUF files and on Apple's chips, and vLLM elsewhere.
    isl: Tokens of a prompt, mean.
    osl: Tokens of an answer, mean.
    prefix_hit: Share of a prompt found in the prefix cache, 0 to 1.
    acceptance: Chance that a draft is accepted when all before it were, instead.
    accepted: Tokens a step yields, the checked one included.
    draft_tp: Chips a draft model is cut over.
    drafter: Who drafts: mtp (the model's own layers), eagle3 (a head of one layer), ngram (a look-up in the text), or a smaller model by its name.
    drafts: Tokens drafted for each sequence and step, or auto for as many as are best.
    workload: What is written: how often drafts hold then, as published, where no acceptance is given.
    max_num_batched_tokens: Most tokens in a pass.
    max_num_seqs: Most sequences that decode together, per group.
    gpu_memory_utilization: Share of a chip's memory the engine takes.
    ttft: Time to first token that is good enough: a mean as 1s, a percentile as p90=1s.
    tpot: Time per output token that is good enough: a mean as 30ms, a percentile as p99=50ms.
    e2e: Time of a whole request that is good enough: a mean or a percentile.
    disaggregated: Prompts on chips of their own; the layout above is that of the decoding ones.
    prefill_cp: Context parallel.
    prefill_dcp: Decode context parallel: chips of a tensor-parallel group that share the tokens of a cache.
    prefill_dp: Data parallel.
    prefill_ep: Expert parallel.
    prefill_etp: Expert tensor parallel.
    prefill_pp: Pipeline parallel.
    prefill_redundant_experts: Redundant experts per layer.
    prefill_tp: Tensor parallel.
    prefill_chips: Chips that compute prompts; as many as balance the decoding ones unless given.
    cpu_moe: All experts lie in the host's memory.
    ngl: Layers on the card as llama.cpp counts them, the output being one more; the others lie in the host's memory (-ngl).
    offload_layers: Layers in the host's memory, instead.
    n_cpu_moe: Layers, from the first on, whose experts lie in the host's memory.
    cpu_offload_gb: GiB of each chip's weights that lie in the host's memory and are sent in every pass, as vLLM and SGLang count.
    host: The host: a processor of the catalogue, such as epyc-9654 or ryzen-9-7950x.
    host_memory: Memory of the host, such as 512 GB.
    host_bandwidth: Bandwidth of that memory, such as 400 GB/s.
    host_link: The link between host and card one way, such as 32 GB/s.
    tensor_split: Shares of the model on cards joined by +, in their order, such as 3,1 (--tensor-split).
    disk: Rate of the disk that weights come from where the host's memory is too small for them (mmap), such as 5 GB/s.
    startup: Time until a new replica serves.
    growth: How much the load grows in a minute, as a share of it, such as 20%.
    min_replicas: Fewest replicas.
    max_replicas: Most replicas.
    name: Name of the Deployment that is scaled; the model's unless given. Pools of their own end with -prefill and -decode.
    namespace: Its namespace.
    prometheus: Address of Prometheus.
    """

SimulateHeld = TypedDict(
    "SimulateHeld",
    {
        "holds": bool,
        "limit_ms": float,
        "metric": Any,
        "ms": NotRequired[float | None],
        "percentile": float,
    },
)

SimulateGoodput = TypedDict(
    "SimulateGoodput",
    {
        "e2e_ms": NotRequired[float | None],
        "held": NotRequired[list[SimulateHeld]],
        "requests_per_s": float,
        "share": float,
        "tpot_ms": NotRequired[float | None],
        "ttft_ms": NotRequired[float | None],
    },
)

SimulateMetric = TypedDict(
    "SimulateMetric",
    {
        "mean_ms": float,
        "metric": Any,
        "p50_ms": float,
        "p50_plus_minus_ms": NotRequired[float | None],
        "p90_ms": float,
        "p90_plus_minus_ms": NotRequired[float | None],
        "p95_ms": float,
        "p999_ms": float,
        "p99_ms": float,
        "p99_plus_minus_ms": NotRequired[float | None],
    },
)

SimulateOfClass = TypedDict(
    "SimulateOfClass",
    {
        "failed": int,
        "goodput": NotRequired[SimulateGoodput | None],
        "metrics": list[SimulateMetric],
        "name": str,
        "output_tok_s": float,
        "requests": int,
        "requests_per_s": float,
    },
)

SimulateDifference = TypedDict(
    "SimulateDifference",
    {
        "metric": Any,
        "ms": float,
        "percentile": float,
        "plus_minus_ms": NotRequired[float | None],
    },
)

SimulateVariant = TypedDict(
    "SimulateVariant",
    {
        "cached": float,
        "differences": list[SimulateDifference],
        "failed": float,
        "goodput": NotRequired[float | None],
        "metrics": list[SimulateMetric],
        "output_tok_s": float,
        "queue_grows": bool,
        "value": str,
    },
)

SimulateCompared = TypedDict(
    "SimulateCompared",
    {
        "same_times": bool,
        "variants": list[SimulateVariant],
        "verdict": Any,
        "what": str,
    },
)

SimulateWaited = TypedDict(
    "SimulateWaited",
    {
        "arrival_s": float,
        "cached": int,
        "decode_ms": float,
        "e2e_ms": float,
        "evicted_ms": float,
        "fetch_ms": NotRequired[float | None],
        "fetched": NotRequired[int | None],
        "others_prompts_ms": float,
        "output": int,
        "outside_ms": float,
        "preemptions": int,
        "prompt": int,
        "prompt_ms": float,
        "queue_ms": float,
        "replica": int,
        "request": int,
        "retried_ms": float,
        "tpot_ms": NotRequired[float | None],
        "transfer_ms": float,
        "ttft_ms": float,
    },
)

SimulatePartGrade = TypedDict(
    "SimulatePartGrade",
    {
        "grade": Any,
        "part": str,
        "says": Any,
    },
)

SimulateCarried = TypedDict(
    "SimulateCarried",
    {
        "from": NotRequired[str | None],
        "step": str,
        "what": str,
    },
)

SimulateFactors = TypedDict(
    "SimulateFactors",
    {
        "throughput": float,
        "tpot": float,
        "ttft": float,
    },
)

SimulateEvidence = TypedDict(
    "SimulateEvidence",
    {
        "chip": str,
        "engine": str,
        "grade": Any,
        "model": str,
        "off": NotRequired[float | None],
        "parts": list[SimulatePartGrade],
        "rows": int,
        "says": Any,
        "steps": list[SimulateCarried],
        "within": SimulateFactors,
    },
)

SimulateFailed = TypedDict(
    "SimulateFailed",
    {
        "after_ms": float,
        "arrival_s": float,
        "attempts": int,
        "output": int,
        "prompt": int,
        "request": int,
        "why": Any,
    },
)

SimulateMark = TypedDict(
    "SimulateMark",
    {
        "label": Any,
        "x": float,
        "y": float,
    },
)

SimulateSeries = TypedDict(
    "SimulateSeries",
    {
        "name": Any,
        "points": list[list[Any]],
        "role": Any,
    },
)

SimulateAxis = TypedDict(
    "SimulateAxis",
    {
        "label": str,
        "scale": Any,
        "unit": Any,
    },
)

SimulateFigure = TypedDict(
    "SimulateFigure",
    {
        "marks": list[SimulateMark],
        "series": list[SimulateSeries],
        "subtitle": Any,
        "title": Any,
        "x": SimulateAxis,
        "y": SimulateAxis,
    },
)

SimulateHappened = TypedDict(
    "SimulateHappened",
    {
        "arrived": int,
        "deaths": int,
        "drains": int,
        "failed": int,
        "lost": int,
        "refused": int,
        "replicas_paid": float,
        "retried": int,
        "starts": int,
        "timed_out": int,
    },
)

SimulatePart2 = TypedDict(
    "SimulatePart2",
    {
        "ms": float,
        "share": float,
        "what": Any,
    },
)

SimulateServed = TypedDict(
    "SimulateServed",
    {
        "busy": float,
        "cache_peak": float,
        "cached": float,
        "dummy": NotRequired[float | None],
        "output_tok_s": float,
        "output_tok_s_per_chip": float,
        "preemptions": int,
        "recomputed_tokens": int,
        "requests_per_s": float,
        "steps": int,
        "usd_per_mtok_output": NotRequired[float | None],
        "with_prompts": float,
    },
)

SimulateOfTier = TypedDict(
    "SimulateOfTier",
    {
        "evicted_bytes": float,
        "fetched_bytes": float,
        "found_tokens": int,
        "gb_per_s": float,
        "link_busy": float,
        "size_bytes": float,
        "tier": Any,
        "written_bytes": float,
    },
)

SimulateStep = TypedDict(
    "SimulateStep",
    {
        "decodes": int,
        "end_s": float,
        "prompt_tokens": int,
        "replica": int,
        "start_s": float,
    },
)

SimulateWindow = TypedDict(
    "SimulateWindow",
    {
        "from_s": float,
        "left_out": int,
        "requests": list[SimulateWaited],
        "steps": list[SimulateStep],
        "to_s": float,
    },
)

SimulateData = TypedDict(
    "SimulateData",
    {
        "assumptions": list[Any],
        "chips": int,
        "classes": list[SimulateOfClass],
        "compared": NotRequired[SimulateCompared | None],
        "each": list[SimulateWaited],
        "engine": str,
        "evidence": NotRequired[SimulateEvidence | None],
        "failed": NotRequired[list[SimulateFailed]],
        "figure": SimulateFigure,
        "goodput": NotRequired[SimulateGoodput | None],
        "happened": NotRequired[SimulateHappened | None],
        "layout": str,
        "layout_chosen": bool,
        "least_replicas": NotRequired[int | None],
        "metrics": list[SimulateMetric],
        "model": str,
        "parts": list[SimulatePart2],
        "prefill_replicas": int,
        "price_basis": NotRequired[list[str]],
        "replicas": int,
        "requests": int,
        "router": Any,
        "schema": NotRequired[int],
        "served": SimulateServed,
        "span_s": float,
        "system": str,
        "throughput": SimulateFigure,
        "tiers": list[SimulateOfTier],
        "traffic": Any,
        "unfinished": int,
        "verdict": Any,
        "warm_up": int,
        "warnings": list[Any],
        "window": NotRequired[SimulateWindow | None],
        "worst": list[SimulateWaited],
    },
)

def simulate(
    model: str | PathLike[str] | Mapping[str, Any] | None = ...,
    *,
    pretend: bool | None = ...,
    on: str | PathLike[str] | Mapping[str, Any] | None = ...,
    chips: int | str | None = ...,
    link: str | None = ...,
    quantization: str | None = ...,
    kv_cache_dtype: str | None = ...,
    compute_dtype: str | None = ...,
    counting: Literal["strict", "lecture"] | None = ...,
    overlap: str | None = ...,
    price: float | str | None = ...,
    basis: Literal["owner-hyperscaler", "owner-neocloud", "rental", "on-demand", "spot", "owner", "contract", "reserved"] | None = ...,
    dcp: int | str | None = ...,
    tp: int | str | None = ...,
    pp: int | str | None = ...,
    dp: int | str | None = ...,
    cp: int | str | None = ...,
    ep: int | str | None = ...,
    etp: int | str | None = ...,
    redundant_experts: int | str | None = ...,
    engine: str | None = ...,
    rate: float | str | None = ...,
    users: int | str | None = ...,
    think: float | str | None = ...,
    cv: float | str | None = ...,
    swing: float | str | None = ...,
    spike: float | str | None = ...,
    period: float | str | None = ...,
    spike_length: float | str | None = ...,
    isl: float | str | None = ...,
    osl: float | str | None = ...,
    isl_sigma: float | str | None = ...,
    osl_sigma: float | str | None = ...,
    prefixes: int | str | None = ...,
    prefix_tokens: float | str | None = ...,
    turns: int | str | None = ...,
    requests: int | str | None = ...,
    seed: int | str | None = ...,
    trace_name: str | None = ...,
    trace: str | PathLike[str] | Mapping[str, Any] | None = ...,
    speed_up: float | str | None = ...,
    first: int | str | None = ...,
    spread: bool | None = ...,
    replicas: int | str | None = ...,
    prefill_replicas: int | str | None = ...,
    router: Literal["round-robin", "random", "connections", "two-choices", "least-loaded", "session", "prefix-hash", "bounded-hash", "kv", "cache-aware", "scored"] | None = ...,
    overlap_credit: float | str | None = ...,
    stale: float | str | None = ...,
    kv_offloading_size: float | str | None = ...,
    host_bandwidth: float | str | None = ...,
    host_latency: float | str | None = ...,
    disk_gib: float | str | None = ...,
    disk_bandwidth: float | str | None = ...,
    disk_latency: float | str | None = ...,
    remote_gib: float | str | None = ...,
    remote_bandwidth: float | str | None = ...,
    remote_latency: float | str | None = ...,
    max_queued_requests: int | str | None = ...,
    timeout: float | str | None = ...,
    retries: int | str | None = ...,
    backoff: float | str | None = ...,
    mtbf: float | str | None = ...,
    restart: float | str | None = ...,
    max_replicas: int | str | None = ...,
    scale_target: float | str | None = ...,
    scale_window: float | str | None = ...,
    scale_cooldown: float | str | None = ...,
    start: float | str | None = ...,
    load: float | str | None = ...,
    max_num_batched_tokens: int | str | None = ...,
    max_num_seqs: int | str | None = ...,
    max_model_len: int | str | None = ...,
    block_size: int | str | None = ...,
    num_gpu_blocks_override: int | str | None = ...,
    gpu_memory_utilization: float | str | None = ...,
    no_enable_prefix_caching: bool | None = ...,
    no_enable_chunked_prefill: bool | None = ...,
    no_async_scheduling: bool | None = ...,
    long_prefill_token_threshold: int | str | None = ...,
    num_speculative_tokens: int | str | None = ...,
    acceptance: float | str | None = ...,
    chunked_prefill_size: int | str | None = ...,
    max_prefill_tokens: int | str | None = ...,
    max_running_requests: int | str | None = ...,
    max_total_tokens: int | str | None = ...,
    context_length: int | str | None = ...,
    enable_mixed_chunk: bool | None = ...,
    disable_radix_cache: bool | None = ...,
    schedule_policy: Literal["fcfs", "lpm"] | None = ...,
    schedule_conservativeness: float | str | None = ...,
    disable_overlap_schedule: bool | None = ...,
    prefill_decode_interval: int | str | None = ...,
    scheduler_recv_interval: int | str | None = ...,
    enable_hierarchical_cache: bool | None = ...,
    hicache_ratio: float | str | None = ...,
    hicache_size: float | str | None = ...,
    hicache_write_policy: Literal["write_through", "write_through_selective", "write_back"] | None = ...,
    hicache_storage_prefetch_policy: Literal["best_effort", "wait_complete", "timeout"] | None = ...,
    max_num_tokens: int | str | None = ...,
    max_batch_size: int | str | None = ...,
    max_seq_len: int | str | None = ...,
    tokens_per_block: int | str | None = ...,
    max_tokens: int | str | None = ...,
    capacity_scheduler_policy: Literal["GUARANTEED_NO_EVICT", "MAX_UTILIZATION", "STATIC_BATCH"] | None = ...,
    enable_chunked_context: bool | None = ...,
    context_chunking_policy: Literal["FIRST_COME_FIRST_SERVED", "EQUAL_PROGRESS"] | None = ...,
    no_enable_block_reuse: bool | None = ...,
    disable_overlap_scheduler: bool | None = ...,
    host_cache_size: int | str | None = ...,
    ttft: float | str | None = ...,
    tpot: float | str | None = ...,
    e2e: float | str | None = ...,
    warm_up: float | str | None = ...,
    outside: float | str | None = ...,
    step_by_step: bool | None = ...,
    each: bool | None = ...,
    compare: str | None = ...,
    window: str | None = ...,
    files: Mapping[str, str | Mapping[str, Any]] | None = ...,
    catalog: str | PathLike[str] | Catalog | None = ...,
) -> Answer[SimulateData]:
    """Serving request by request, as the engine schedules: percentiles, bursts, full caches, routers

    pretend: Computes what the engine, the chip or the model's context do not allow, and says that it does not exist.
    model: Model: a catalogue name, a Hugging Face id, or the path of a config.json, of a folder holding one, or of a model .toml.
    on: Machine: a system, a chip, so many chips such as 8xh200, or the path of a chip or system .toml; with the price of a chip and hour in dollars behind an @ where the catalogue's is not meant, such as 8xh100@2.10.
    chips: Use this many chips of the machine instead of all.
    link: Join its chips by this link instead of their own: a rate one way out of each chip such as 25GB/s or 200Gb/s, a kind such as pcie4, pcie4 x8, 10GbE, nvlink (the bridge for two cards), a kind and its rate such as nvlink4:450GB/s, or ideal.
    quantization: Weight format: bf16, fp8, mxfp8, nvfp4, mxfp4, int4 and others.
    kv_cache_dtype: KV-cache format.
    compute_dtype: Arithmetic to compute in: bf16, fp8, fp4, int8 and others.
    counting: What is counted; lecture: no attention arithmetic, every weight read in every step.
    overlap: max, sum, kv+max (scaling book), or a share from 0 (none) to 1 (perfect).
    price: Price of a chip and hour, such as 2.10/h.
    basis: Whose price.
    dcp: Decode context parallel: chips of a tensor-parallel group that share the tokens of a cache.
    tp: Tensor parallel.
    pp: Pipeline parallel.
    dp: Data parallel.
    cp: Context parallel.
    ep: Expert parallel.
    etp: Expert tensor parallel.
    redundant_experts: Redundant experts per layer.
    engine: The engine, with a version where it matters: vllm, vllm@0.19.0, sglang, trtllm.
    rate: Requests per second.
    users: People who each wait for an answer, think, and ask again, instead.
    think: Time to think before the next request or turn, mean.
    cv: Variation of the gaps between requests: 0 even, 1 at random, 2 to 4 in bursts.
    swing: A rate that swings by such a share around its mean.
    spike: So many times the rate in a spike.
    period: How long a swing lasts, or the time between spikes.
    spike_length: How long a spike lasts.
    isl: Tokens of a prompt: all alike, unless a spread is given.
    osl: Tokens of an answer.
    isl_sigma: Standard deviation of the logarithm of prompts' lengths: drawn log-normal with the mean above.
    osl_sigma: The same of answers.
    prefixes: Different prefixes that prompts begin with, by popularity 1, 1/2, 1/3 and so on.
    prefix_tokens: Tokens of such a prefix, before the prompt's own.
    turns: Turns of a conversation: each prompt holds all before it.
    requests: Requests in all.
    seed: Seed of everything drawn.
    trace_name: Name of the trace, for messages.
    trace: A trace: Mooncake JSON lines, or CSV with columns for time, prompt, answer and blocks, or for session, time to think, prompt and answer.
    speed_up: Times as fast.
    first: Only so many of its requests, the first.
    spread: Spreads requests with the same time evenly until the next time: traces are often logged in batches.
    replicas: Replicas of the deployment, on each machine of a fleet joined by +.
    prefill_replicas: Replicas beside them that only compute prompts and send their caches on; of two machines joined by +, on the first.
    router: How a replica is chosen.
    overlap_credit: What a found block is worth to the KV-aware router, in blocks to compute.
    stale: The router sees the replicas as they were so long ago, at most.
    kv_offloading_size: Host memory of a replica for caches, in GiB.
    host_bandwidth: Rate from host memory to the chips of a replica, all together.
    host_latency: Time before the first byte of a fetch from host memory.
    disk_gib: Disk of a replica for caches, in GiB, below host memory.
    disk_bandwidth: Rate from disk to host memory.
    disk_latency: Time before the first byte of a fetch from disk.
    remote_gib: Remote memory of a replica for caches, in GiB, below disk.
    remote_bandwidth: Rate from remote memory to the host.
    remote_latency: Time before the first byte of a fetch from remote memory.
    max_queued_requests: A replica refuses what comes while so many wait there.
    timeout: A client gives up after so long, all attempts together; its request has failed.
    retries: What was refused or lost is sent again so often.
    backoff: Pause before the first retry, drawn half to one and a half times as long; doubled for each further one.
    mtbf: Mean time a replica lives, exponential; what is inside when it dies is lost.
    restart: Time until a dead replica is back, its cache empty.
    max_replicas: Most replicas: a controller starts and drains them, from as many as are given.
    scale_target: Requests inside a replica that it aims at.
    scale_window: It looks at the mean of such a time.
    scale_cooldown: It drains when it has changed nothing for so long.
    start: Time to start a replica before its weights are loaded.
    load: Rate at which a replica loads its weights.
    max_num_batched_tokens: Most tokens in a step.
    max_num_seqs: Most sequences that run together.
    max_model_len: Longest sequence.
    block_size: Tokens of a block of the cache.
    num_gpu_blocks_override: Blocks of the cache.
    gpu_memory_utilization: Share of a chip's memory the engine takes.
    no_enable_prefix_caching: Computes every prompt whole, whatever was computed before.
    no_enable_chunked_prefill: A prompt that does not fit in a step waits.
    no_async_scheduling: Chooses a step only when the one before has ended.
    long_prefill_token_threshold: Most tokens of one prompt in a step while others wait; 0 for no limit.
    num_speculative_tokens: Tokens drafted for each sequence and step.
    acceptance: Chance that a draft is accepted when all before it were.
    chunked_prefill_size: SGLang: most prompt tokens in a step; -1 does not cut prompts.
    max_prefill_tokens: SGLang: most prompt tokens in a step where prompts are not cut.
    max_running_requests: SGLang: most sequences that run together.
    max_total_tokens: SGLang: tokens of the cache.
    context_length: SGLang: longest sequence.
    enable_mixed_chunk: SGLang: decodes beside the prompts of a step.
    disable_radix_cache: SGLang: computes every prompt whole, whatever was computed before.
    schedule_policy: SGLang: who of those that wait goes first.
    schedule_conservativeness: SGLang: how much of the answers to come is reckoned with when a prompt is let in.
    disable_overlap_schedule: SGLang: chooses a step only when the one before has ended.
    prefill_decode_interval: SGLang: steps of decodes between two with prompts.
    scheduler_recv_interval: SGLang: steps of decodes between two looks at what has come.
    enable_hierarchical_cache: SGLang: keeps caches in host memory as well.
    hicache_ratio: SGLang: host memory over the cache memory of the chips.
    hicache_size: SGLang: host memory for the caches of a chip, in GB.
    hicache_write_policy: SGLang: when what the chips computed is copied to host memory, and from there to storage.
    hicache_storage_prefetch_policy: SGLang: how long a request waits for what storage has of it.
    max_num_tokens: TensorRT-LLM: most tokens in a step.
    max_batch_size: TensorRT-LLM: most sequences that run together.
    max_seq_len: TensorRT-LLM: longest sequence.
    tokens_per_block: TensorRT-LLM: tokens of a block of the cache.
    max_tokens: TensorRT-LLM: tokens of the cache.
    capacity_scheduler_policy: TensorRT-LLM: who may be resident.
    enable_chunked_context: TensorRT-LLM: cuts prompts that do not fit in a step.
    context_chunking_policy: TensorRT-LLM: how prompts are cut.
    no_enable_block_reuse: TensorRT-LLM: computes every prompt whole, whatever was computed before.
    disable_overlap_scheduler: TensorRT-LLM: chooses a step only when the one before has ended.
    host_cache_size: TensorRT-LLM: host memory for the caches of a chip, in bytes.
    ttft: Time to first token that is good enough: of each request as 1s, of so many of them as p90=1s.
    tpot: Time per output token that is good enough: of each request as 30ms, of so many of them as p99=50ms.
    e2e: Time of a whole request that is good enough: of each, or of so many of them.
    warm_up: Share of the requests that only warm up, in order of arrival.
    outside: Time of each request outside the engine, before its first token is seen: HTTP, tokenizer, messages.
    step_by_step: Step by step instead of many steps at once: the same bytes, slowly.
    each: What each request met as well.
    compare: Several values of one setting on the same requests, the first as the base: router=round-robin,kv,least-loaded.
    window: Steps and requests of a stretch of the run as well, from and to in seconds: 10..20.
    """

ValidateCoverageCard = TypedDict(
    "ValidateCoverageCard",
    {
        "error": float,
        "factor": float,
        "groups": int,
        "holds": NotRequired[bool | None],
        "inside": float,
        "median": float,
        "n": int,
        "p90": float,
        "step": str,
        "what": str,
    },
)

ValidateCrossStratumCard = TypedDict(
    "ValidateCrossStratumCard",
    {
        "coverage": float,
        "median": float,
        "metric": str,
        "n": int,
        "p90": float,
        "sample_coverage": float,
        "sample_median": float,
        "sample_p90": float,
    },
)

ValidateCrossCard = TypedDict(
    "ValidateCrossCard",
    {
        "by": str,
        "groups": list[str],
        "notes": list[str],
        "strata": list[ValidateCrossStratumCard],
        "total": NotRequired[ValidateCrossStratumCard | None],
    },
)

ValidateRowCard = TypedDict(
    "ValidateRowCard",
    {
        "assumed": list[Any],
        "error": float,
        "high": NotRequired[float | None],
        "inside": NotRequired[bool | None],
        "low": NotRequired[float | None],
        "measured": float,
        "metric": str,
        "place": str,
        "predicted": float,
        "ratio": float,
        "roofline": float,
        "what": str,
    },
)

ValidateSkipCard = TypedDict(
    "ValidateSkipCard",
    {
        "n": int,
        "reason": str,
        "rows": list[str],
    },
)

ValidateStratumCard = TypedDict(
    "ValidateStratumCard",
    {
        "bias": float,
        "constant_median": float,
        "constant_p90": float,
        "coverage": NotRequired[float | None],
        "median": float,
        "metric": str,
        "n": int,
        "p90": float,
        "roofline_median": float,
        "roofline_p90": float,
        "spearman": NotRequired[float | None],
    },
)

ValidateSourceCard = TypedDict(
    "ValidateSourceCard",
    {
        "address": str,
        "fitted": str,
        "id": str,
        "n": int,
        "name": str,
        "notes": list[Any],
        "rows": list[ValidateRowCard],
        "skipped": list[ValidateSkipCard],
        "strata": list[ValidateStratumCard],
        "title": str,
    },
)

ValidateFolderCard = TypedDict(
    "ValidateFolderCard",
    {
        "cross": NotRequired[ValidateCrossCard | None],
        "folder": str,
        "sources": list[ValidateSourceCard],
        "total": NotRequired[ValidateStratumCard | None],
        "unread": list[str],
    },
)

ValidateRequest = TypedDict(
    "ValidateRequest",
    {
        "rows": NotRequired[bool],
        "tables": NotRequired[list[str]],
    },
)

ValidateSchedulesCard = TypedDict(
    "ValidateSchedulesCard",
    {
        "differ": list[str],
        "engine": str,
        "scenarios": int,
        "steps": int,
    },
)

ValidateLatencyCard = TypedDict(
    "ValidateLatencyCard",
    {
        "at": str,
        "bias": float,
        "median": float,
        "metric": str,
        "n": int,
        "p90": float,
    },
)

ValidateFigureCard = TypedDict(
    "ValidateFigureCard",
    {
        "at": str,
        "measured_ms": float,
        "metric": str,
        "predicted_ms": float,
    },
)

ValidateRunCard = TypedDict(
    "ValidateRunCard",
    {
        "figures": list[ValidateFigureCard],
        "name": str,
        "requests": int,
    },
)

ValidateReplayCard = TypedDict(
    "ValidateReplayCard",
    {
        "address": str,
        "assumed": str,
        "fitted": str,
        "id": str,
        "latencies": list[ValidateLatencyCard],
        "name": str,
        "runs": list[ValidateRunCard],
    },
)

ValidateSimulateCard = TypedDict(
    "ValidateSimulateCard",
    {
        "schedules": ValidateSchedulesCard,
        "sources": list[ValidateReplayCard],
    },
)

ValidateData = TypedDict(
    "ValidateData",
    {
        "coverage": NotRequired[list[ValidateCoverageCard]],
        "folder": NotRequired[ValidateFolderCard | None],
        "request": ValidateRequest,
        "schema": NotRequired[int],
        "simulate": NotRequired[ValidateSimulateCard | None],
        "sources": list[ValidateSourceCard],
        "total": NotRequired[ValidateStratumCard | None],
    },
)

def validate(
    *tables: str | Sequence[str],
    rows: bool | None = ...,
    files: Mapping[str, str | Mapping[str, Any]] | None = ...,
    catalog: str | PathLike[str] | Catalog | None = ...,
) -> Answer[ValidateData]:
    """Published measurements against our predictions, row by row and source by source

    tables: Tables by name; all when empty; simulate replays whole runs and recorded schedules.
    rows: Whether the answer holds every row.
    """

PriceCacheCard = TypedDict(
    "PriceCacheCard",
    {
        "break_even_gap_s": NotRequired[float | None],
        "break_even_uses": NotRequired[float | None],
        "lifetime": Any,
        "name": str,
        "read_usd_per_mtok": float,
        "source": str,
        "storage_usd_per_mtok_hour": NotRequired[float | None],
        "write_usd_per_mtok": float,
    },
)

PricePolicyCard = TypedDict(
    "PricePolicyCard",
    {
        "fresh_usd": float,
        "lifetime_assumed": bool,
        "long_requests": int,
        "output_usd": float,
        "policy": str,
        "read_usd": float,
        "storage_usd": float,
        "total_usd": float,
        "written_usd": float,
    },
)

PriceTierCard = TypedDict(
    "PriceTierCard",
    {
        "input_usd_per_mtok": float,
        "output_usd_per_mtok": float,
        "reached": bool,
        "threshold": float,
    },
)

PriceCard = TypedDict(
    "PriceCard",
    {
        "caches": list[PriceCacheCard],
        "checked": str,
        "conflicts": list[Any],
        "day": str,
        "factors": list[float],
        "id": str,
        "implied_storage_usd_per_mtok_hour": NotRequired[float | None],
        "input_usd_per_mtok": float,
        "list_from": str,
        "modes": list[list[Any]],
        "name": str,
        "note": NotRequired[str | None],
        "output_usd_per_mtok": float,
        "policies": list[PricePolicyCard],
        "provider": str,
        "source": str,
        "tiers": list[PriceTierCard],
        "window": NotRequired[str | None],
    },
)

PriceMark = TypedDict(
    "PriceMark",
    {
        "label": Any,
        "x": float,
        "y": float,
    },
)

PriceSeries = TypedDict(
    "PriceSeries",
    {
        "name": Any,
        "points": list[list[Any]],
        "role": Any,
    },
)

PriceAxis = TypedDict(
    "PriceAxis",
    {
        "label": str,
        "scale": Any,
        "unit": Any,
    },
)

PriceFigure = TypedDict(
    "PriceFigure",
    {
        "marks": list[PriceMark],
        "series": list[PriceSeries],
        "subtitle": Any,
        "title": Any,
        "x": PriceAxis,
        "y": PriceAxis,
    },
)

PriceData = TypedDict(
    "PriceData",
    {
        "cards": list[PriceCard],
        "figure": NotRequired[PriceFigure | None],
        "left_out": list[Any],
        "mode": str,
        "schema": NotRequired[int],
        "workload": NotRequired[Any],
    },
)

def price(
    *sheets: str | Sequence[str],
    as_of: str | None = ...,
    at: str | None = ...,
    mode: str | None = ...,
    against: str | PathLike[str] | Mapping[str, Any] | None = ...,
    answer: float | str | None = ...,
    cached: float | str | None = ...,
    gap: float | str | None = ...,
    input: float | str | None = ...,
    instructions: float | str | None = ...,
    offer: str | None = ...,
    output: float | str | None = ...,
    suffix: float | str | None = ...,
    trace: str | PathLike[str] | Mapping[str, Any] | None = ...,
    trace_name: str | None = ...,
    turns: int | str | None = ...,
    user: float | str | None = ...,
    uses: int | str | None = ...,
    written: float | str | None = ...,
    files: Mapping[str, str | Mapping[str, Any]] | None = ...,
    catalog: str | PathLike[str] | Catalog | None = ...,
) -> Answer[PriceData]:
    """What a provider charges: lists by date, tiers, caches, modes and hours, and the bill of a workload

    sheets: Price sheets by id or alias; all when empty.
    as_of: Prices of this day, such as 2026-08-05; each sheet's newest list known when it was checked unless given.
    at: The moment of the requests in UTC, of the first one in a trace, for prices by the hour.
    mode: standard, batch, flex, priority, fast.
    against: Another sheet for the same model: where they disagree is reported with the conflicts.
    answer: Tokens of each turn's answer.
    cached: Of the prompt, tokens read from a cache; up to 1, a share of it, such as 80%.
    gap: Time between two requests or turns.
    input: Tokens of the prompt; with uses, of the prefix that comes back.
    instructions: Tokens of instructions and tools before the first turn.
    offer: Which cache offer they were read from or written to: 5m, 1h, automatic, explicit.
    output: Tokens of the answer.
    suffix: New tokens behind the prefix.
    trace: A trace: JSON lines as Mooncake writes them, or CSV with time_s,input_tokens,output_tokens.
    trace_name: What to call the trace.
    turns: Turns of a conversation that sends all that was said before.
    user: New tokens of each turn.
    uses: Requests with the same prefix.
    written: Of the prompt, tokens written to a cache; up to 1, a share of it, such as 80%.
    """

CostMark = TypedDict(
    "CostMark",
    {
        "label": Any,
        "x": float,
        "y": float,
    },
)

CostSeries = TypedDict(
    "CostSeries",
    {
        "name": Any,
        "points": list[list[Any]],
        "role": Any,
    },
)

CostAxis = TypedDict(
    "CostAxis",
    {
        "label": str,
        "scale": Any,
        "unit": Any,
    },
)

CostFigure = TypedDict(
    "CostFigure",
    {
        "marks": list[CostMark],
        "series": list[CostSeries],
        "subtitle": Any,
        "title": Any,
        "x": CostAxis,
        "y": CostAxis,
    },
)

CostMarginCard = TypedDict(
    "CostMarginCard",
    {
        "cost_profit_margin": float,
        "cost_usd_per_mtok": float,
        "gross_margin": float,
        "markup": float,
        "price_usd_per_mtok": float,
        "what": Any,
    },
)

CostPartGrade = TypedDict(
    "CostPartGrade",
    {
        "grade": Any,
        "part": str,
        "says": Any,
    },
)

CostCarried = TypedDict(
    "CostCarried",
    {
        "from": NotRequired[str | None],
        "step": str,
        "what": str,
    },
)

CostFactors = TypedDict(
    "CostFactors",
    {
        "throughput": float,
        "tpot": float,
        "ttft": float,
    },
)

CostEvidence = TypedDict(
    "CostEvidence",
    {
        "chip": str,
        "engine": str,
        "grade": Any,
        "model": str,
        "off": NotRequired[float | None],
        "parts": list[CostPartGrade],
        "rows": int,
        "says": Any,
        "steps": list[CostCarried],
        "within": CostFactors,
    },
)

CostRange = TypedDict(
    "CostRange",
    {
        "high": float,
        "low": float,
        "value": float,
    },
)

CostRateCard = TypedDict(
    "CostRateCard",
    {
        "evidence": NotRequired[CostEvidence | None],
        "late": bool,
        "limit": NotRequired[Any],
        "source": Any,
        "tok_s": CostRange,
        "words": Any,
    },
)

CostServed = TypedDict(
    "CostServed",
    {
        "requests_per_s": float,
        "words": Any,
    },
)

CostRatesCard = TypedDict(
    "CostRatesCard",
    {
        "because": NotRequired[Any],
        "decode": CostRateCard,
        "prefill": CostRateCard,
        "served": NotRequired[CostServed | None],
        "supported": list[Any],
    },
)

CostBarCard = TypedDict(
    "CostBarCard",
    {
        "at_high_usd_per_mtok": float,
        "at_low_usd_per_mtok": float,
        "high": float,
        "low": float,
        "name": str,
    },
)

CostData = TypedDict(
    "CostData",
    {
        "all_usd_per_mtok": float,
        "assumptions": list[Any],
        "basis": Any,
        "blended_input_usd_per_mtok": float,
        "cached_usd_per_mtok": float,
        "chip_usd_per_hour": float,
        "decode_tok_s": float,
        "figure": CostFigure,
        "hour_parts": list[list[Any]],
        "input_j_per_token": float,
        "input_usd_per_mtok": float,
        "margins": list[CostMarginCard],
        "model": str,
        "output_g_per_mtok": NotRequired[float | None],
        "output_j_per_token": float,
        "output_usd_per_mtok": float,
        "output_wh_per_ktok": float,
        "prefill_per_decode_chip": float,
        "prefill_tok_s": float,
        "rates": CostRatesCard,
        "schema": NotRequired[int],
        "system": str,
        "tornado": list[CostBarCard],
        "utilisation": float,
    },
)

def cost(
    model: str | PathLike[str] | Mapping[str, Any] | None = ...,
    *,
    on: str | PathLike[str] | Mapping[str, Any] | None = ...,
    chips: int | str | None = ...,
    link: str | None = ...,
    quantization: str | None = ...,
    kv_cache_dtype: str | None = ...,
    compute_dtype: str | None = ...,
    counting: Literal["strict", "lecture"] | None = ...,
    overlap: str | None = ...,
    price: float | str | None = ...,
    basis: Literal["owner-hyperscaler", "owner-neocloud", "rental", "on-demand", "spot", "owner", "contract", "reserved"] | None = ...,
    prefill_tok_s: float | str | None = ...,
    decode_tok_s: float | str | None = ...,
    rates: Literal["auto", "predicted", "board"] | None = ...,
    engine: str | None = ...,
    dcp: int | str | None = ...,
    tp: int | str | None = ...,
    pp: int | str | None = ...,
    dp: int | str | None = ...,
    cp: int | str | None = ...,
    ep: int | str | None = ...,
    etp: int | str | None = ...,
    redundant_experts: int | str | None = ...,
    prefill_efficiency: float | str | None = ...,
    decode_efficiency: float | str | None = ...,
    batch: float | str | None = ...,
    tpot: float | str | None = ...,
    context: float | str | None = ...,
    prompt: float | str | None = ...,
    owner: bool | str | Mapping[str, Any] | None = ...,
    availability: float | str | None = ...,
    capex: float | str | None = ...,
    capital: float | str | None = ...,
    colo: float | str | None = ...,
    energy: float | str | None = ...,
    staff: float | str | None = ...,
    years: float | str | None = ...,
    utilisation: float | str | None = ...,
    hit: float | str | None = ...,
    cached_cost: float | str | None = ...,
    cache_tier: str | None = ...,
    cache_hold: float | str | None = ...,
    accepted: float | str | None = ...,
    draft: float | str | None = ...,
    input_per_output: float | str | None = ...,
    power: float | str | None = ...,
    pue: float | str | None = ...,
    carbon: float | str | None = ...,
    sheet: str | PathLike[str] | Mapping[str, Any] | None = ...,
    input_price: float | str | None = ...,
    output_price: float | str | None = ...,
    files: Mapping[str, str | Mapping[str, Any]] | None = ...,
    catalog: str | PathLike[str] | Catalog | None = ...,
) -> Answer[CostData]:
    """What a token costs to serve: dollars, joules, margins, and which assumption matters most

    model: Model: a catalogue name, a Hugging Face id, or the path of a config.json, of a folder holding one, or of a model .toml.
    on: Machine: a system, a chip, so many chips such as 8xh200, or the path of a chip or system .toml; with the price of a chip and hour in dollars behind an @ where the catalogue's is not meant, such as 8xh100@2.10.
    chips: Use this many chips of the machine instead of all.
    link: Join its chips by this link instead of their own: a rate one way out of each chip such as 25GB/s or 200Gb/s, a kind such as pcie4, pcie4 x8, 10GbE, nvlink (the bridge for two cards), a kind and its rate such as nvlink4:450GB/s, or ideal.
    quantization: Weight format: bf16, fp8, mxfp8, nvfp4, mxfp4, int4 and others.
    kv_cache_dtype: KV-cache format.
    compute_dtype: Arithmetic to compute in: bf16, fp8, fp4, int8 and others.
    counting: What is counted; lecture: no attention arithmetic, every weight read in every step.
    overlap: max, sum, kv+max (scaling book), or a share from 0 (none) to 1 (perfect).
    price: Price of a chip and hour, such as 2.10/h.
    basis: Whose price.
    prefill_tok_s: Prompt tokens per second of one chip, as known.
    decode_tok_s: Output tokens per second of one chip, as known.
    rates: Where the others come from; auto is predicted where the model is known layer by layer, it fits, and nothing that belongs to the board was asked for.
    engine: The engine, with a version where it matters: vllm, sglang, trtllm, ideal.
    dcp: Decode context parallel: chips of a tensor-parallel group that share the tokens of a cache.
    tp: Tensor parallel.
    pp: Pipeline parallel.
    dp: Data parallel.
    cp: Context parallel.
    ep: Expert parallel.
    etp: Expert tensor parallel.
    redundant_experts: Redundant experts per layer.
    prefill_efficiency: Share of the board's prefill rate that is reached; 0.4 unless given.
    decode_efficiency: Share of the board's decode rate that is reached; 0.5 unless given.
    batch: Sequences decoded together on the whole machine; what memory and engine hold unless given, 4,096 for the board.
    tpot: Longest time per output token that is sold, for predicted rates where the batch is not given.
    context: Their mean context.
    prompt: Tokens of a prompt.
    owner: Compute the hour an owner pays, instead of a price from the catalogue.
    availability: Share of hours a chip can be used.
    capex: Price of a chip with its share of the machine; the catalogue's unless given.
    capital: Cost of capital per year.
    colo: Space and cooling of one chip.
    energy: Price of electricity.
    staff: People who keep one chip running.
    years: Years it is written off over.
    utilisation: Share of held chip time that serves.
    hit: Share of input tokens found in the cache.
    cached_cost: What reading a cached token costs; from cache_tier unless given.
    cache_tier: Memory tier the cache is read from.
    cache_hold: How long a cached token is kept there between two uses.
    accepted: Tokens accepted per step with speculation.
    draft: Extra work of drafting, as a share of a step.
    input_per_output: Input tokens for each output token.
    power: All-in power of a chip; the catalogue's unless given.
    pue: Power of the building over power of the machines; where given, the machine's own power counts and no figure that has the building in it.
    carbon: Carbon of the electricity.
    sheet: A price sheet to compare with.
    input_price: Input price to compare with, instead of a sheet's.
    output_price: Output price to compare with, instead of a sheet's.
    """

OwnChange = TypedDict(
    "OwnChange",
    {
        "equal": bool,
        "machines": int,
        "own_above": bool,
        "own_usd_per_day": float,
        "provider_usd_per_day": float,
        "requests_per_day": float,
    },
)

OwnMark = TypedDict(
    "OwnMark",
    {
        "label": Any,
        "x": float,
        "y": float,
    },
)

OwnSeries = TypedDict(
    "OwnSeries",
    {
        "name": Any,
        "points": list[list[Any]],
        "role": Any,
    },
)

OwnAxis = TypedDict(
    "OwnAxis",
    {
        "label": str,
        "scale": Any,
        "unit": Any,
    },
)

OwnFigure = TypedDict(
    "OwnFigure",
    {
        "marks": list[OwnMark],
        "series": list[OwnSeries],
        "subtitle": Any,
        "title": Any,
        "x": OwnAxis,
        "y": OwnAxis,
    },
)

OwnHost = TypedDict(
    "OwnHost",
    {
        "cheaper_from_requests_per_day": NotRequired[float | None],
        "host": str,
        "usd_per_mtok": list[float],
        "usd_per_request": float,
    },
)

OwnPartGrade = TypedDict(
    "OwnPartGrade",
    {
        "grade": Any,
        "part": str,
        "says": Any,
    },
)

OwnCarried = TypedDict(
    "OwnCarried",
    {
        "from": NotRequired[str | None],
        "step": str,
        "what": str,
    },
)

OwnFactors = TypedDict(
    "OwnFactors",
    {
        "throughput": float,
        "tpot": float,
        "ttft": float,
    },
)

OwnEvidence = TypedDict(
    "OwnEvidence",
    {
        "chip": str,
        "engine": str,
        "grade": Any,
        "model": str,
        "off": NotRequired[float | None],
        "parts": list[OwnPartGrade],
        "rows": int,
        "says": Any,
        "steps": list[OwnCarried],
        "within": OwnFactors,
    },
)

OwnRange = TypedDict(
    "OwnRange",
    {
        "high": float,
        "low": float,
        "value": float,
    },
)

OwnRateCard = TypedDict(
    "OwnRateCard",
    {
        "evidence": NotRequired[OwnEvidence | None],
        "late": bool,
        "limit": NotRequired[Any],
        "source": Any,
        "tok_s": OwnRange,
        "words": Any,
    },
)

OwnServed = TypedDict(
    "OwnServed",
    {
        "requests_per_s": float,
        "words": Any,
    },
)

OwnRatesCard = TypedDict(
    "OwnRatesCard",
    {
        "because": NotRequired[Any],
        "decode": OwnRateCard,
        "prefill": OwnRateCard,
        "served": NotRequired[OwnServed | None],
        "supported": list[Any],
    },
)

OwnRouted = TypedDict(
    "OwnRouted",
    {
        "after_usd_per_day": float,
        "before_usd_per_day": float,
        "machines": list[int],
        "model": str,
        "requests_per_day": float,
        "says": Any,
        "share": float,
        "system": str,
    },
)

OwnThere = TypedDict(
    "OwnThere",
    {
        "machines": int,
        "own_usd_per_day": float,
        "provider_usd_per_day": float,
        "requests_per_day": float,
        "says": Any,
        "utilisation": float,
    },
)

OwnData = TypedDict(
    "OwnData",
    {
        "assumptions": list[Any],
        "basis": Any,
        "changes": list[OwnChange],
        "cheaper_for_good_from": NotRequired[float | None],
        "cheaper_from_requests_per_day": NotRequired[float | None],
        "cheaper_from_tokens_per_day": NotRequired[float | None],
        "cheaper_from_utilisation": NotRequired[float | None],
        "chip_usd_per_hour": float,
        "chips": int,
        "figure": OwnFigure,
        "full_requests_per_day": float,
        "hosts": list[OwnHost],
        "machine_requests_per_day": float,
        "machine_usd_per_day": float,
        "model": str,
        "own_usd_per_request": float,
        "provider": Any,
        "provider_usd_per_mtok": NotRequired[list[float] | None],
        "provider_usd_per_request": float,
        "rates": OwnRatesCard,
        "request_tokens": list[float],
        "route": NotRequired[OwnRouted | None],
        "schema": NotRequired[int],
        "system": str,
        "there": NotRequired[OwnThere | None],
        "verdict": Any,
    },
)

def own(
    model: str | PathLike[str] | Mapping[str, Any] | None = ...,
    *,
    on: str | PathLike[str] | Mapping[str, Any] | None = ...,
    chips: int | str | None = ...,
    link: str | None = ...,
    quantization: str | None = ...,
    kv_cache_dtype: str | None = ...,
    compute_dtype: str | None = ...,
    counting: Literal["strict", "lecture"] | None = ...,
    overlap: str | None = ...,
    price: float | str | None = ...,
    basis: Literal["owner-hyperscaler", "owner-neocloud", "rental", "on-demand", "spot", "owner", "contract", "reserved"] | None = ...,
    prefill_tok_s: float | str | None = ...,
    decode_tok_s: float | str | None = ...,
    rates: Literal["auto", "predicted", "board"] | None = ...,
    engine: str | None = ...,
    dcp: int | str | None = ...,
    tp: int | str | None = ...,
    pp: int | str | None = ...,
    dp: int | str | None = ...,
    cp: int | str | None = ...,
    ep: int | str | None = ...,
    etp: int | str | None = ...,
    redundant_experts: int | str | None = ...,
    prefill_efficiency: float | str | None = ...,
    decode_efficiency: float | str | None = ...,
    batch: float | str | None = ...,
    tpot: float | str | None = ...,
    context: float | str | None = ...,
    prompt: float | str | None = ...,
    owner: bool | str | Mapping[str, Any] | None = ...,
    availability: float | str | None = ...,
    capex: float | str | None = ...,
    capital: float | str | None = ...,
    colo: float | str | None = ...,
    energy: float | str | None = ...,
    staff: float | str | None = ...,
    years: float | str | None = ...,
    power: float | str | None = ...,
    pue: float | str | None = ...,
    provider: str | PathLike[str] | Mapping[str, Any] | None = ...,
    provider_price: str | None = ...,
    reserved: float | str | None = ...,
    reserved_tok_s: float | str | None = ...,
    answer: float | str | None = ...,
    hit: float | str | None = ...,
    requests_per_day: float | str | None = ...,
    curve: str | Sequence[float | str] | None = ...,
    peak: float | str | None = ...,
    target: float | str | None = ...,
    route: str | None = ...,
    route_on: str | None = ...,
    files: Mapping[str, str | Mapping[str, Any]] | None = ...,
    catalog: str | PathLike[str] | Catalog | None = ...,
) -> Answer[OwnData]:
    """Own or rented machines against a provider: from which use, from how many requests a day on they are cheaper

    model: Model: a catalogue name, a Hugging Face id, or the path of a config.json, of a folder holding one, or of a model .toml.
    on: Machine: a system, a chip, so many chips such as 8xh200, or the path of a chip or system .toml; with the price of a chip and hour in dollars behind an @ where the catalogue's is not meant, such as 8xh100@2.10.
    chips: Use this many chips of the machine instead of all.
    link: Join its chips by this link instead of their own: a rate one way out of each chip such as 25GB/s or 200Gb/s, a kind such as pcie4, pcie4 x8, 10GbE, nvlink (the bridge for two cards), a kind and its rate such as nvlink4:450GB/s, or ideal.
    quantization: Weight format: bf16, fp8, mxfp8, nvfp4, mxfp4, int4 and others.
    kv_cache_dtype: KV-cache format.
    compute_dtype: Arithmetic to compute in: bf16, fp8, fp4, int8 and others.
    counting: What is counted; lecture: no attention arithmetic, every weight read in every step.
    overlap: max, sum, kv+max (scaling book), or a share from 0 (none) to 1 (perfect).
    price: Price of a chip and hour, such as 2.10/h.
    basis: Whose price.
    prefill_tok_s: Prompt tokens per second of one chip, as known.
    decode_tok_s: Output tokens per second of one chip, as known.
    rates: Where the others come from; auto is predicted where the model is known layer by layer, it fits, and nothing that belongs to the board was asked for.
    engine: The engine, with a version where it matters: vllm, sglang, trtllm, ideal.
    dcp: Decode context parallel: chips of a tensor-parallel group that share the tokens of a cache.
    tp: Tensor parallel.
    pp: Pipeline parallel.
    dp: Data parallel.
    cp: Context parallel.
    ep: Expert parallel.
    etp: Expert tensor parallel.
    redundant_experts: Redundant experts per layer.
    prefill_efficiency: Share of the board's prefill rate that is reached; 0.4 unless given.
    decode_efficiency: Share of the board's decode rate that is reached; 0.5 unless given.
    batch: Sequences decoded together on the whole machine; what memory and engine hold unless given, 4,096 for the board.
    tpot: Longest time per output token that is sold, for predicted rates where the batch is not given.
    context: Their mean context.
    prompt: Tokens of a prompt.
    owner: Compute the hour an owner pays, instead of a price from the catalogue.
    availability: Share of hours a chip can be used.
    capex: Price of a chip with its share of the machine; the catalogue's unless given.
    capital: Cost of capital per year.
    colo: Space and cooling of one chip.
    energy: Price of electricity.
    staff: People who keep one chip running.
    years: Years it is written off over.
    power: All-in power of a chip; the catalogue's unless given.
    pue: Power of the building over power of the machines; where given, the machine's own power counts and no figure that has the building in it.
    provider: Who else serves it: a price sheet, or a host of this model such as together.
    provider_price: The provider's price instead: dollars per million tokens in, out and cached, such as 0.6/2.4/0.06.
    reserved: Reserved capacity at the provider instead: dollars per hour of one unit.
    reserved_tok_s: Output tokens per second one reserved unit serves.
    answer: Tokens of an answer.
    hit: Share of a prompt found in the cache, here and there.
    requests_per_day: Requests of a day, where these are known.
    curve: The day in equal parts, as any numbers in proportion to traffic.
    peak: The busiest hour over the mean, where the day is not given.
    target: Share of a machine in use at the busiest hour.
    route: A small model that answers a share of the requests, such as qwen3-8b=60%.
    route_on: Machine of the small model.
    """

FleetPool = TypedDict(
    "FleetPool",
    {
        "capacity_tok_s": float,
        "chips": int,
        "headroom": float,
        "mean_tok_s": float,
        "peak_tok_s": float,
        "replicas": int,
        "utilisation": float,
    },
)

FleetMark = TypedDict(
    "FleetMark",
    {
        "label": Any,
        "x": float,
        "y": float,
    },
)

FleetSeries = TypedDict(
    "FleetSeries",
    {
        "name": Any,
        "points": list[list[Any]],
        "role": Any,
    },
)

FleetAxis = TypedDict(
    "FleetAxis",
    {
        "label": str,
        "scale": Any,
        "unit": Any,
    },
)

FleetFigure = TypedDict(
    "FleetFigure",
    {
        "marks": list[FleetMark],
        "series": list[FleetSeries],
        "subtitle": Any,
        "title": Any,
        "x": FleetAxis,
        "y": FleetAxis,
    },
)

FleetPartGrade = TypedDict(
    "FleetPartGrade",
    {
        "grade": Any,
        "part": str,
        "says": Any,
    },
)

FleetCarried = TypedDict(
    "FleetCarried",
    {
        "from": NotRequired[str | None],
        "step": str,
        "what": str,
    },
)

FleetFactors = TypedDict(
    "FleetFactors",
    {
        "throughput": float,
        "tpot": float,
        "ttft": float,
    },
)

FleetEvidence = TypedDict(
    "FleetEvidence",
    {
        "chip": str,
        "engine": str,
        "grade": Any,
        "model": str,
        "off": NotRequired[float | None],
        "parts": list[FleetPartGrade],
        "rows": int,
        "says": Any,
        "steps": list[FleetCarried],
        "within": FleetFactors,
    },
)

FleetRange = TypedDict(
    "FleetRange",
    {
        "high": float,
        "low": float,
        "value": float,
    },
)

FleetRateCard = TypedDict(
    "FleetRateCard",
    {
        "evidence": NotRequired[FleetEvidence | None],
        "late": bool,
        "limit": NotRequired[Any],
        "source": Any,
        "tok_s": FleetRange,
        "words": Any,
    },
)

FleetServed = TypedDict(
    "FleetServed",
    {
        "requests_per_s": float,
        "words": Any,
    },
)

FleetRatesCard = TypedDict(
    "FleetRatesCard",
    {
        "because": NotRequired[Any],
        "decode": FleetRateCard,
        "prefill": FleetRateCard,
        "served": NotRequired[FleetServed | None],
        "supported": list[Any],
    },
)

FleetData = TypedDict(
    "FleetData",
    {
        "assumptions": list[Any],
        "capex_usd": NotRequired[float | None],
        "chips": int,
        "decode": FleetPool,
        "figure": FleetFigure,
        "input_tok_s": float,
        "machine_share": NotRequired[float | None],
        "machines": int,
        "model": str,
        "needs": NotRequired[Any],
        "output_tok_s": float,
        "peak_over_mean": float,
        "power_w": float,
        "prefill": FleetPool,
        "rates": FleetRatesCard,
        "schema": NotRequired[int],
        "system": str,
        "system_chips": int,
        "traffic": Any,
        "usd_per_day": NotRequired[float | None],
        "usd_per_output_mtok": NotRequired[float | None],
    },
)

def fleet(
    model: str | PathLike[str] | Mapping[str, Any] | None = ...,
    *,
    on: str | PathLike[str] | Mapping[str, Any] | None = ...,
    chips: int | str | None = ...,
    link: str | None = ...,
    quantization: str | None = ...,
    kv_cache_dtype: str | None = ...,
    compute_dtype: str | None = ...,
    counting: Literal["strict", "lecture"] | None = ...,
    overlap: str | None = ...,
    price: float | str | None = ...,
    basis: Literal["owner-hyperscaler", "owner-neocloud", "rental", "on-demand", "spot", "owner", "contract", "reserved"] | None = ...,
    prefill_tok_s: float | str | None = ...,
    decode_tok_s: float | str | None = ...,
    rates: Literal["auto", "predicted", "board"] | None = ...,
    engine: str | None = ...,
    dcp: int | str | None = ...,
    tp: int | str | None = ...,
    pp: int | str | None = ...,
    dp: int | str | None = ...,
    cp: int | str | None = ...,
    ep: int | str | None = ...,
    etp: int | str | None = ...,
    redundant_experts: int | str | None = ...,
    prefill_efficiency: float | str | None = ...,
    decode_efficiency: float | str | None = ...,
    batch: float | str | None = ...,
    tpot: float | str | None = ...,
    context: float | str | None = ...,
    prompt: float | str | None = ...,
    input_tok_s: float | str | None = ...,
    output_tok_s: float | str | None = ...,
    rate: float | str | None = ...,
    answer: float | str | None = ...,
    tokens_per_month: float | str | None = ...,
    input_per_output: float | str | None = ...,
    hit: float | str | None = ...,
    curve: str | Sequence[float | str] | None = ...,
    peak: float | str | None = ...,
    target: float | str | None = ...,
    prefill_chips: int | str | None = ...,
    decode_chips: int | str | None = ...,
    world_tok_s: float | str | None = ...,
    pue: float | str | None = ...,
    files: Mapping[str, str | Mapping[str, Any]] | None = ...,
    catalog: str | PathLike[str] | Catalog | None = ...,
) -> Answer[FleetData]:
    """From traffic to replicas, chips, racks, megawatts and dollars a day

    model: Model: a catalogue name, a Hugging Face id, or the path of a config.json, of a folder holding one, or of a model .toml.
    on: Machine: a system, a chip, so many chips such as 8xh200, or the path of a chip or system .toml; with the price of a chip and hour in dollars behind an @ where the catalogue's is not meant, such as 8xh100@2.10.
    chips: Use this many chips of the machine instead of all.
    link: Join its chips by this link instead of their own: a rate one way out of each chip such as 25GB/s or 200Gb/s, a kind such as pcie4, pcie4 x8, 10GbE, nvlink (the bridge for two cards), a kind and its rate such as nvlink4:450GB/s, or ideal.
    quantization: Weight format: bf16, fp8, mxfp8, nvfp4, mxfp4, int4 and others.
    kv_cache_dtype: KV-cache format.
    compute_dtype: Arithmetic to compute in: bf16, fp8, fp4, int8 and others.
    counting: What is counted; lecture: no attention arithmetic, every weight read in every step.
    overlap: max, sum, kv+max (scaling book), or a share from 0 (none) to 1 (perfect).
    price: Price of a chip and hour, such as 2.10/h.
    basis: Whose price.
    prefill_tok_s: Prompt tokens per second of one chip, as known.
    decode_tok_s: Output tokens per second of one chip, as known.
    rates: Where the others come from; auto is predicted where the model is known layer by layer, it fits, and nothing that belongs to the board was asked for.
    engine: The engine, with a version where it matters: vllm, sglang, trtllm, ideal.
    dcp: Decode context parallel: chips of a tensor-parallel group that share the tokens of a cache.
    tp: Tensor parallel.
    pp: Pipeline parallel.
    dp: Data parallel.
    cp: Context parallel.
    ep: Expert parallel.
    etp: Expert tensor parallel.
    redundant_experts: Redundant experts per layer.
    prefill_efficiency: Share of the board's prefill rate that is reached; 0.4 unless given.
    decode_efficiency: Share of the board's decode rate that is reached; 0.5 unless given.
    batch: Sequences decoded together on the whole machine; what memory and engine hold unless given, 4,096 for the board.
    tpot: Longest time per output token that is sold, for predicted rates where the batch is not given.
    context: Their mean context.
    prompt: Tokens of a prompt.
    input_tok_s: Input tokens per second on average.
    output_tok_s: Output tokens per second on average.
    rate: Requests per second on average, with prompt tokens in (of the rates) and answer tokens out.
    answer: Output tokens of a request.
    tokens_per_month: Tokens announced per month, input and output together.
    input_per_output: Input tokens for each output token, where only their sum is known.
    hit: Share of input found in the cache.
    curve: The day in equal parts, as any numbers in proportion to traffic.
    peak: The busiest part of the day over the mean, where the day is not given.
    target: Share of capacity in use at the peak.
    prefill_chips: Chips of a prefill replica; the machine's unless given.
    decode_chips: Chips of a decode replica; the machine's unless given.
    world_tok_s: Output tokens per second of a whole market, for one machine's share.
    pue: Power of the building over power of the machines; where given, the machine's own power counts and no figure that has the building in it.
    """

CacheCandidate = TypedDict(
    "CacheCandidate",
    {
        "drain_s": float,
        "id": str,
        "ratio": float,
    },
)

CacheDurationCard = TypedDict(
    "CacheDurationCard",
    {
        "candidates": list[CacheCandidate],
        "cheapest": str,
        "duration_s": float,
    },
)

CacheSegmentCard = TypedDict(
    "CacheSegmentCard",
    {
        "from_s": float,
        "id": str,
        "to_s": NotRequired[float | None],
    },
)

CacheMark = TypedDict(
    "CacheMark",
    {
        "label": Any,
        "x": float,
        "y": float,
    },
)

CacheSeries = TypedDict(
    "CacheSeries",
    {
        "name": Any,
        "points": list[list[Any]],
        "role": Any,
    },
)

CacheAxis = TypedDict(
    "CacheAxis",
    {
        "label": str,
        "scale": Any,
        "unit": Any,
    },
)

CacheFigure = TypedDict(
    "CacheFigure",
    {
        "marks": list[CacheMark],
        "series": list[CacheSeries],
        "subtitle": Any,
        "title": Any,
        "x": CacheAxis,
        "y": CacheAxis,
    },
)

CacheLineCard = TypedDict(
    "CacheLineCard",
    {
        "drain_s": NotRequired[float | None],
        "hold_usd_per_mtok_hour": NotRequired[float | None],
        "id": str,
        "name": Any,
        "recompute_cheaper_after_s": NotRequired[float | None],
        "retrieve_usd_per_mtok": NotRequired[float | None],
    },
)

CachePartGrade = TypedDict(
    "CachePartGrade",
    {
        "grade": Any,
        "part": str,
        "says": Any,
    },
)

CacheCarried = TypedDict(
    "CacheCarried",
    {
        "from": NotRequired[str | None],
        "step": str,
        "what": str,
    },
)

CacheFactors = TypedDict(
    "CacheFactors",
    {
        "throughput": float,
        "tpot": float,
        "ttft": float,
    },
)

CacheEvidence = TypedDict(
    "CacheEvidence",
    {
        "chip": str,
        "engine": str,
        "grade": Any,
        "model": str,
        "off": NotRequired[float | None],
        "parts": list[CachePartGrade],
        "rows": int,
        "says": Any,
        "steps": list[CacheCarried],
        "within": CacheFactors,
    },
)

CacheRange = TypedDict(
    "CacheRange",
    {
        "high": float,
        "low": float,
        "value": float,
    },
)

CacheRateCard = TypedDict(
    "CacheRateCard",
    {
        "evidence": NotRequired[CacheEvidence | None],
        "late": bool,
        "limit": NotRequired[Any],
        "source": Any,
        "tok_s": CacheRange,
        "words": Any,
    },
)

CacheBestCard = TypedDict(
    "CacheBestCard",
    {
        "hit_rate": float,
        "id": str,
        "ttl_s": float,
        "usd_per_mtok": float,
    },
)

CacheReuseCard = TypedDict(
    "CacheReuseCard",
    {
        "best": list[CacheBestCard],
        "hit_rate_max": float,
        "hit_rates": list[list[Any]],
        "median_gap_s": NotRequired[float | None],
        "no_cache_usd_per_mtok": float,
        "p90_gap_s": NotRequired[float | None],
        "source": Any,
    },
)

CacheData = TypedDict(
    "CacheData",
    {
        "assumptions": list[Any],
        "durations": list[CacheDurationCard],
        "envelope": list[CacheSegmentCard],
        "figure": CacheFigure,
        "hit_figure": NotRequired[CacheFigure | None],
        "kv_bytes_per_token": float,
        "lines": list[CacheLineCard],
        "model": str,
        "nobody_serves": NotRequired[Any],
        "prefill": CacheRateCard,
        "reuse": NotRequired[CacheReuseCard | None],
        "schema": NotRequired[int],
        "sources": list[Any],
        "system": str,
    },
)

def cache(
    model: str | PathLike[str] | Mapping[str, Any] | None = ...,
    *,
    on: str | PathLike[str] | Mapping[str, Any] | None = ...,
    chips: int | str | None = ...,
    link: str | None = ...,
    quantization: str | None = ...,
    kv_cache_dtype: str | None = ...,
    compute_dtype: str | None = ...,
    counting: Literal["strict", "lecture"] | None = ...,
    overlap: str | None = ...,
    price: float | str | None = ...,
    basis: Literal["owner-hyperscaler", "owner-neocloud", "rental", "on-demand", "spot", "owner", "contract", "reserved"] | None = ...,
    prefill_tok_s: float | str | None = ...,
    decode_tok_s: float | str | None = ...,
    rates: Literal["auto", "predicted", "board"] | None = ...,
    engine: str | None = ...,
    dcp: int | str | None = ...,
    tp: int | str | None = ...,
    pp: int | str | None = ...,
    dp: int | str | None = ...,
    cp: int | str | None = ...,
    ep: int | str | None = ...,
    etp: int | str | None = ...,
    redundant_experts: int | str | None = ...,
    prefill_efficiency: float | str | None = ...,
    decode_efficiency: float | str | None = ...,
    batch: float | str | None = ...,
    tpot: float | str | None = ...,
    context: float | str | None = ...,
    prompt: float | str | None = ...,
    tiers: str | Sequence[str] | None = ...,
    durations: str | Sequence[float | str] | None = ...,
    gaps: str | Sequence[str] | None = ...,
    trace_name: str | None = ...,
    trace: str | PathLike[str] | Mapping[str, Any] | None = ...,
    files: Mapping[str, str | Mapping[str, Any]] | None = ...,
    catalog: str | PathLike[str] | Catalog | None = ...,
) -> Answer[CacheData]:
    """Where to keep a prefix and for how long: hold or recompute, by memory tier

    model: Model: a catalogue name, a Hugging Face id, or the path of a config.json, of a folder holding one, or of a model .toml.
    on: Machine: a system, a chip, so many chips such as 8xh200, or the path of a chip or system .toml; with the price of a chip and hour in dollars behind an @ where the catalogue's is not meant, such as 8xh100@2.10.
    chips: Use this many chips of the machine instead of all.
    link: Join its chips by this link instead of their own: a rate one way out of each chip such as 25GB/s or 200Gb/s, a kind such as pcie4, pcie4 x8, 10GbE, nvlink (the bridge for two cards), a kind and its rate such as nvlink4:450GB/s, or ideal.
    quantization: Weight format: bf16, fp8, mxfp8, nvfp4, mxfp4, int4 and others.
    kv_cache_dtype: KV-cache format.
    compute_dtype: Arithmetic to compute in: bf16, fp8, fp4, int8 and others.
    counting: What is counted; lecture: no attention arithmetic, every weight read in every step.
    overlap: max, sum, kv+max (scaling book), or a share from 0 (none) to 1 (perfect).
    price: Price of a chip and hour, such as 2.10/h.
    basis: Whose price.
    prefill_tok_s: Prompt tokens per second of one chip, as known.
    decode_tok_s: Output tokens per second of one chip, as known.
    rates: Where the others come from; auto is predicted where the model is known layer by layer, it fits, and nothing that belongs to the board was asked for.
    engine: The engine, with a version where it matters: vllm, sglang, trtllm, ideal.
    dcp: Decode context parallel: chips of a tensor-parallel group that share the tokens of a cache.
    tp: Tensor parallel.
    pp: Pipeline parallel.
    dp: Data parallel.
    cp: Context parallel.
    ep: Expert parallel.
    etp: Expert tensor parallel.
    redundant_experts: Redundant experts per layer.
    prefill_efficiency: Share of the board's prefill rate that is reached; 0.4 unless given.
    decode_efficiency: Share of the board's decode rate that is reached; 0.5 unless given.
    batch: Sequences decoded together on the whole machine; what memory and engine hold unless given, 4,096 for the board.
    tpot: Longest time per output token that is sold, for predicted rates where the batch is not given.
    context: Their mean context.
    prompt: Tokens of a prompt.
    tiers: Memory tiers by id; all of the catalogue when empty.
    durations: Published lifetimes to place.
    gaps: Gaps and the share of prompt tokens wanted again after each: 30s:0.2,10min:0.1.
    trace_name: Name of the trace, for messages.
    trace: A trace with hash_ids: JSON lines as Mooncake writes them.
    """

FastmodeMark = TypedDict(
    "FastmodeMark",
    {
        "label": Any,
        "x": float,
        "y": float,
    },
)

FastmodeSeries = TypedDict(
    "FastmodeSeries",
    {
        "name": Any,
        "points": list[list[Any]],
        "role": Any,
    },
)

FastmodeAxis = TypedDict(
    "FastmodeAxis",
    {
        "label": str,
        "scale": Any,
        "unit": Any,
    },
)

FastmodeFigure = TypedDict(
    "FastmodeFigure",
    {
        "marks": list[FastmodeMark],
        "series": list[FastmodeSeries],
        "subtitle": Any,
        "title": Any,
        "x": FastmodeAxis,
        "y": FastmodeAxis,
    },
)

FastmodeKnownCard = TypedDict(
    "FastmodeKnownCard",
    {
        "mode": str,
        "price": float,
        "sheet": str,
        "speed": float,
        "x": float,
    },
)

FastmodeData = TypedDict(
    "FastmodeData",
    {
        "accepted_instead": float,
        "batch_ratio": float,
        "chips_instead": float,
        "curve": list[list[Any]],
        "figure": FastmodeFigure,
        "known": list[FastmodeKnownCard],
        "of": Any,
        "price": float,
        "scaling_instead": float,
        "schema": NotRequired[int],
        "slow_saving": float,
        "speed": float,
        "speed_limit": float,
        "work_instead": float,
        "x": float,
    },
)

def fastmode(
    sheet: str | PathLike[str] | Mapping[str, Any] | None = ...,
    *,
    x: float | str | None = ...,
    price: float | str | None = ...,
    speed: float | str | None = ...,
    files: Mapping[str, str | Mapping[str, Any]] | None = ...,
    catalog: str | PathLike[str] | Catalog | None = ...,
) -> Answer[FastmodeData]:
    """What a fast mode's price says about the batch, and what else could explain it

    x: Time to read the caches over that to read the weights at the standard batch, instead of a price or of a speed: what a speed costs, or what a price buys.
    price: Price over the standard price; a sheet's unless given.
    speed: Speed over the standard speed; a sheet's unless given.
    sheet: A price sheet with a fast mode.
    """

ScalingMark = TypedDict(
    "ScalingMark",
    {
        "label": Any,
        "x": float,
        "y": float,
    },
)

ScalingSeries = TypedDict(
    "ScalingSeries",
    {
        "name": Any,
        "points": list[list[Any]],
        "role": Any,
    },
)

ScalingAxis = TypedDict(
    "ScalingAxis",
    {
        "label": str,
        "scale": Any,
        "unit": Any,
    },
)

ScalingFigure = TypedDict(
    "ScalingFigure",
    {
        "marks": list[ScalingMark],
        "series": list[ScalingSeries],
        "subtitle": Any,
        "title": Any,
        "x": ScalingAxis,
        "y": ScalingAxis,
    },
)

ScalingPointCard = TypedDict(
    "ScalingPointCard",
    {
        "flop": float,
        "loss": NotRequired[float | None],
        "params": float,
        "tokens": float,
        "tokens_per_param": float,
        "usd": NotRequired[float | None],
    },
)

ScalingRouterCard = TypedDict(
    "ScalingRouterCard",
    {
        "effective_params": float,
        "loss": float,
        "router": str,
    },
)

ScalingBand = TypedDict(
    "ScalingBand",
    {
        "high": float,
        "low": float,
        "median": float,
    },
)

ScalingSpread = TypedDict(
    "ScalingSpread",
    {
        "narrow": NotRequired[ScalingBand | None],
        "wide": ScalingBand,
    },
)

ScalingLawCard = TypedDict(
    "ScalingLawCard",
    {
        "compute_over_least": NotRequired[float | None],
        "given": NotRequired[ScalingPointCard | None],
        "given_outside": list[Any],
        "law": str,
        "left_out": NotRequired[Any],
        "name": str,
        "notes": list[str],
        "optimum": NotRequired[ScalingPointCard | None],
        "outside": list[Any],
        "routers": list[ScalingRouterCard],
        "source": str,
        "tokens_per_param_spread": NotRequired[ScalingSpread | None],
        "usd_spread": NotRequired[ScalingSpread | None],
    },
)

ScalingLaw = TypedDict(
    "ScalingLaw",
    {
        "granularity": NotRequired[float],
        "law": NotRequired[str],
        "precision_worth": NotRequired[float],
        "router": NotRequired[str],
        "sparsity": NotRequired[float],
        "unique_tokens": NotRequired[float | None],
    },
)

ScalingMachine = TypedDict(
    "ScalingMachine",
    {
        "on": NotRequired[str | None],
        "price_usd_per_chip_hour": NotRequired[float | None],
        "serve_format": NotRequired[str],
        "serve_on": NotRequired[str | None],
        "serve_price_usd_per_chip_hour": NotRequired[float | None],
        "train_format": NotRequired[str],
        "train_mfu": NotRequired[float],
    },
)

ScalingRequest = TypedDict(
    "ScalingRequest",
    {
        "flop": NotRequired[float | None],
        "law": NotRequired[ScalingLaw],
        "loss": NotRequired[float | None],
        "machine": NotRequired[ScalingMachine],
        "params": NotRequired[float | None],
        "tokens": NotRequired[float | None],
    },
)

ScalingData = TypedDict(
    "ScalingData",
    {
        "assumptions": list[Any],
        "iso_flop": NotRequired[ScalingFigure | None],
        "iso_loss": NotRequired[ScalingFigure | None],
        "laws": list[ScalingLawCard],
        "question": Any,
        "repeats": NotRequired[Any],
        "request": ScalingRequest,
        "schema": NotRequired[int],
    },
)

def scaling(
    *,
    law: str | None = ...,
    sparsity: float | str | None = ...,
    granularity: float | str | None = ...,
    router: Literal["s-base", "rl-r", "hash"] | None = ...,
    unique_tokens: float | str | None = ...,
    precision_worth: float | str | None = ...,
    flop: float | str | None = ...,
    loss: float | str | None = ...,
    params: float | str | None = ...,
    tokens: float | str | None = ...,
    on: str | None = ...,
    price: float | str | None = ...,
    train_mfu: float | str | None = ...,
    train_format: str | None = ...,
    files: Mapping[str, str | Mapping[str, Any]] | None = ...,
    catalog: str | PathLike[str] | Catalog | None = ...,
) -> Answer[ScalingData]:
    """Scaling laws: loss of a size and its data, and the best of both for a compute or a loss

    law: A law of the catalogue, or all.
    sparsity: Total over active parameters; 1 is dense.
    granularity: How many pieces an expert of full width is cut into.
    router: Whose experts a dense law is extended with (Clark et al. 2022).
    unique_tokens: Fresh tokens available; data repeats beyond them, where the law knows what that is worth.
    precision_worth: What parameters trained in a low precision are worth, of what they are in 16 bits.
    flop: Training compute: the best size and tokens for it.
    loss: A loss: the least compute that reaches it.
    params: Active parameters: with tokens, a point; alone, the tokens that make it compute-optimal.
    tokens: Training tokens.
    on: A chip of the catalogue; no dollars without one.
    price: Price per chip and hour in dollars, instead of the catalogue's.
    train_mfu: Share of the dense peak in use while training.
    train_format: Format trained in.
    """

LifecycleMark = TypedDict(
    "LifecycleMark",
    {
        "label": Any,
        "x": float,
        "y": float,
    },
)

LifecycleSeries = TypedDict(
    "LifecycleSeries",
    {
        "name": Any,
        "points": list[list[Any]],
        "role": Any,
    },
)

LifecycleAxis = TypedDict(
    "LifecycleAxis",
    {
        "label": str,
        "scale": Any,
        "unit": Any,
    },
)

LifecycleFigure = TypedDict(
    "LifecycleFigure",
    {
        "marks": list[LifecycleMark],
        "series": list[LifecycleSeries],
        "subtitle": Any,
        "title": Any,
        "x": LifecycleAxis,
        "y": LifecycleAxis,
    },
)

LifecycleOptimumCard = TypedDict(
    "LifecycleOptimumCard",
    {
        "over_training": float,
        "params": float,
        "share": float,
        "tokens": float,
        "usd": NotRequired[float | None],
    },
)

LifecycleBand = TypedDict(
    "LifecycleBand",
    {
        "high": float,
        "low": float,
        "median": float,
    },
)

LifecycleSpread = TypedDict(
    "LifecycleSpread",
    {
        "narrow": NotRequired[LifecycleBand | None],
        "wide": LifecycleBand,
    },
)

LifecycleLawCard = TypedDict(
    "LifecycleLawCard",
    {
        "law": str,
        "left_out": NotRequired[Any],
        "loss": NotRequired[float | None],
        "optimum": NotRequired[LifecycleOptimumCard | None],
        "outside": list[Any],
        "over_training_at_share": NotRequired[float | None],
        "over_training_spread": NotRequired[LifecycleSpread | None],
        "own_tokens_per_param": NotRequired[float | None],
        "rule_extra": NotRequired[float | None],
        "rule_extra_spread": NotRequired[LifecycleSpread | None],
        "source": str,
        "tokens_at_share": NotRequired[float | None],
        "usd_spread": NotRequired[LifecycleSpread | None],
    },
)

LifecycleFailures = TypedDict(
    "LifecycleFailures",
    {
        "chip_mtbf_hours": NotRequired[float | None],
        "chips": NotRequired[float],
        "restart_s": NotRequired[float],
        "stall_s": NotRequired[float],
    },
)

LifecycleLaw = TypedDict(
    "LifecycleLaw",
    {
        "granularity": NotRequired[float],
        "law": NotRequired[str],
        "precision_worth": NotRequired[float],
        "router": NotRequired[str],
        "sparsity": NotRequired[float],
        "unique_tokens": NotRequired[float | None],
    },
)

LifecycleMachine = TypedDict(
    "LifecycleMachine",
    {
        "on": NotRequired[str | None],
        "price_usd_per_chip_hour": NotRequired[float | None],
        "serve_format": NotRequired[str],
        "serve_on": NotRequired[str | None],
        "serve_price_usd_per_chip_hour": NotRequired[float | None],
        "train_format": NotRequired[str],
        "train_mfu": NotRequired[float],
    },
)

LifecycleRlRequest = TypedDict(
    "LifecycleRlRequest",
    {
        "epochs": NotRequired[float],
        "group": NotRequired[float],
        "pass_rate": NotRequired[float],
        "prompts": NotRequired[float],
        "sample_tokens": NotRequired[float],
        "scoring_passes": NotRequired[float],
    },
)

LifecycleRequest = TypedDict(
    "LifecycleRequest",
    {
        "eta": NotRequired[float],
        "failures": NotRequired[LifecycleFailures],
        "law": NotRequired[LifecycleLaw],
        "lifetime_days": NotRequired[float],
        "loss": NotRequired[float | None],
        "machine": NotRequired[LifecycleMachine],
        "model_share": NotRequired[float],
        "params": NotRequired[float],
        "rate_tokens_per_s": NotRequired[float],
        "rl": NotRequired[LifecycleRlRequest | None],
        "rl_factor": NotRequired[float],
        "served_tokens": NotRequired[float | None],
        "split": NotRequired[str],
        "survives": NotRequired[float],
    },
)

LifecycleRlCard = TypedDict(
    "LifecycleRlCard",
    {
        "factor": float,
        "generated_tokens": float,
        "useful": float,
    },
)

LifecycleRuleCard = TypedDict(
    "LifecycleRuleCard",
    {
        "alpha": float,
        "beta": float,
        "over_training": float,
        "pretrain_flop": float,
        "pretrain_tokens": float,
        "rl_flop": float,
        "rl_tokens": float,
        "served_flop": float,
        "tokens_per_param": float,
        "usd": NotRequired[float | None],
    },
)

LifecycleData = TypedDict(
    "LifecycleData",
    {
        "assumptions": list[Any],
        "figure": NotRequired[LifecycleFigure | None],
        "goodput": float,
        "laws": list[LifecycleLawCard],
        "over_training_over_laws": NotRequired[list[Any] | None],
        "request": LifecycleRequest,
        "rl": NotRequired[LifecycleRlCard | None],
        "rule": LifecycleRuleCard,
        "schema": NotRequired[int],
        "served_tokens": float,
        "train_cost": float,
    },
)

def lifecycle(
    *,
    params: float | str | None = ...,
    rate: float | str | None = ...,
    model_share: float | str | None = ...,
    lifetime: float | str | None = ...,
    served: float | str | None = ...,
    survives: float | str | None = ...,
    rl_factor: float | str | None = ...,
    rl: bool | str | Mapping[str, Any] | None = ...,
    rl_epochs: float | str | None = ...,
    rl_group: float | str | None = ...,
    rl_pass_rate: float | str | None = ...,
    rl_prompts: float | str | None = ...,
    rl_sample_tokens: float | str | None = ...,
    rl_scoring: float | str | None = ...,
    eta: float | str | None = ...,
    split: str | None = ...,
    loss: float | str | None = ...,
    chip_mtbf: float | str | None = ...,
    chips: float | str | None = ...,
    stall: float | str | None = ...,
    restart: float | str | None = ...,
    law: str | None = ...,
    sparsity: float | str | None = ...,
    granularity: float | str | None = ...,
    router: Literal["s-base", "rl-r", "hash"] | None = ...,
    unique_tokens: float | str | None = ...,
    precision_worth: float | str | None = ...,
    on: str | None = ...,
    price: float | str | None = ...,
    train_mfu: float | str | None = ...,
    train_format: str | None = ...,
    serve_format: str | None = ...,
    serve_on: str | None = ...,
    serve_price: float | str | None = ...,
    files: Mapping[str, str | Mapping[str, Any]] | None = ...,
    catalog: str | PathLike[str] | Catalog | None = ...,
) -> Answer[LifecycleData]:
    """Pre-training, RL and serving in one budget: the rule of thumb and the exact optimum

    params: Active parameters.
    rate: Tokens per second of a whole family of models.
    model_share: This model's share of them.
    lifetime: Days it is served.
    served: Tokens served, instead of rate and lifetime.
    survives: Probability that the model is ever served.
    rl_factor: FLOP per parameter and RL token, 2 to 6.
    rl: RL in detail: prompts, samples per prompt, tokens per sample and pass rate, such as 100M,16,8k,0.5.
    rl_epochs: Times a sample is trained on.
    rl_group: Samples per prompt.
    rl_pass_rate: Probability that a sample is right.
    rl_prompts: Prompts, counted once per use.
    rl_sample_tokens: Tokens per sample.
    rl_scoring: Further forward passes per sample: reference or reward models of equal size.
    eta: Decode MFU over training MFU.
    split: thirds, quarters, or shares of pre-training, RL and serving such as 40/20/40.
    loss: Loss to reach, instead of that of the rule's point.
    chip_mtbf: Mean time between failures of one chip.
    chips: Chips that train together.
    stall: Pause for a checkpoint.
    restart: From a failure to work again.
    law: A law of the catalogue, or all.
    sparsity: Total over active parameters; 1 is dense.
    granularity: How many pieces an expert of full width is cut into.
    router: Whose experts a dense law is extended with (Clark et al. 2022).
    unique_tokens: Fresh tokens available; data repeats beyond them, where the law knows what that is worth.
    precision_worth: What parameters trained in a low precision are worth, of what they are in 16 bits.
    on: A chip of the catalogue; no dollars without one.
    price: Price per chip and hour in dollars, instead of the catalogue's.
    train_mfu: Share of the dense peak in use while training.
    train_format: Format trained in.
    serve_format: Format served in.
    serve_on: Another chip for serving and RL.
    serve_price: Its price per chip and hour, instead of the catalogue's.
    """

GoodputMark = TypedDict(
    "GoodputMark",
    {
        "label": Any,
        "x": float,
        "y": float,
    },
)

GoodputSeries = TypedDict(
    "GoodputSeries",
    {
        "name": Any,
        "points": list[list[Any]],
        "role": Any,
    },
)

GoodputAxis = TypedDict(
    "GoodputAxis",
    {
        "label": str,
        "scale": Any,
        "unit": Any,
    },
)

GoodputFigure = TypedDict(
    "GoodputFigure",
    {
        "marks": list[GoodputMark],
        "series": list[GoodputSeries],
        "subtitle": Any,
        "title": Any,
        "x": GoodputAxis,
        "y": GoodputAxis,
    },
)

GoodputRequest = TypedDict(
    "GoodputRequest",
    {
        "chip_mtbf_hours": NotRequired[float | None],
        "chips": NotRequired[float | None],
        "interval_s": NotRequired[float | None],
        "job_mtbf_hours": NotRequired[float | None],
        "mfu": NotRequired[float | None],
        "on": NotRequired[str | None],
        "params": NotRequired[float | None],
        "price_usd_per_chip_hour": NotRequired[float | None],
        "restart_s": NotRequired[float],
        "run": NotRequired[str | None],
        "seed": NotRequired[int],
        "stall_s": NotRequired[float],
        "tokens": NotRequired[float | None],
        "work_days": NotRequired[float],
    },
)

GoodputSimulated = TypedDict(
    "GoodputSimulated",
    {
        "checkpoints": int,
        "failures": int,
        "goodput": float,
        "lost": float,
        "restarts": float,
        "stalls": float,
        "wall_days": float,
    },
)

GoodputData = TypedDict(
    "GoodputData",
    {
        "assumptions": list[Any],
        "best_interval_s": NotRequired[float | None],
        "chip_hours": float,
        "chip_hours_per_failure": float,
        "chips": float,
        "effective_mfu": NotRequired[list[Any] | None],
        "first_order": float,
        "goodput": float,
        "interval_s": float,
        "job_mtbf_s": float,
        "over_chips": GoodputFigure,
        "over_interval": GoodputFigure,
        "request": GoodputRequest,
        "schema": NotRequired[int],
        "simulated": NotRequired[GoodputSimulated | None],
        "usd": NotRequired[float | None],
        "wall_days": float,
        "work_days": float,
        "young_interval_s": NotRequired[float | None],
    },
)

def goodput(
    run: str | None = ...,
    *,
    chips: float | str | None = ...,
    chip_mtbf: float | str | None = ...,
    job_mtbf: float | str | None = ...,
    stall: float | str | None = ...,
    restart: float | str | None = ...,
    interval: float | str | None = ...,
    work: float | str | None = ...,
    params: float | str | None = ...,
    tokens: float | str | None = ...,
    on: str | None = ...,
    mfu: float | str | None = ...,
    price: float | str | None = ...,
    seed: int | str | None = ...,
    files: Mapping[str, str | Mapping[str, Any]] | None = ...,
    catalog: str | PathLike[str] | Catalog | None = ...,
) -> Answer[GoodputData]:
    """Progress of a training run under failures: checkpoint interval, effective MFU, days, dollars

    run: A published run whose failures are taken; its chips and MFU too unless given.
    chips: Chips that train together.
    chip_mtbf: Mean time between failures of one chip, instead of the run's.
    job_mtbf: Mean time between failures of the whole job, instead of its chips'.
    stall: Pause for a checkpoint.
    restart: From a failure to work again.
    interval: Work between checkpoints; the best when absent.
    work: Days the run would take if nothing failed.
    params: Active parameters: with tokens, the work is computed from 6 N D, the chip's dense bf16 peak and the MFU.
    tokens: Training tokens.
    on: The chip; the run's unless given.
    mfu: MFU while it works.
    price: Price per chip and hour.
    seed: Seed of the simulated failures.
    """

ForensicsInterval = TypedDict(
    "ForensicsInterval",
    {
        "high": float,
        "low": float,
    },
)

ForensicsContradiction = TypedDict(
    "ForensicsContradiction",
    {
        "at": Any,
        "demanded": ForensicsInterval,
        "gap": float,
        "known": ForensicsInterval,
        "relation": str,
    },
)

ForensicsFinding = TypedDict(
    "ForensicsFinding",
    {
        "at_least": NotRequired[float | None],
        "at_most": NotRequired[float | None],
        "estimate": NotRequired[float | None],
        "given": NotRequired[ForensicsInterval | None],
        "likely": NotRequired[ForensicsInterval | None],
        "what": Any,
    },
)

ForensicsRequest = TypedDict(
    "ForensicsRequest",
    {
        "chip_hours": NotRequired[ForensicsInterval | None],
        "chips": NotRequired[ForensicsInterval | None],
        "days": NotRequired[ForensicsInterval | None],
        "flop": NotRequired[ForensicsInterval | None],
        "flop_per_param": NotRequired[float | None],
        "format": NotRequired[str | None],
        "mfu": NotRequired[ForensicsInterval | None],
        "on": NotRequired[str | None],
        "params": NotRequired[ForensicsInterval | None],
        "peak_flop_per_s": NotRequired[ForensicsInterval | None],
        "price_usd_per_chip_hour": NotRequired[ForensicsInterval | None],
        "run": NotRequired[str | None],
        "tokens": NotRequired[ForensicsInterval | None],
        "usd": NotRequired[ForensicsInterval | None],
    },
)

ForensicsData = TypedDict(
    "ForensicsData",
    {
        "achieved_flop_per_s": NotRequired[list[Any] | None],
        "assumptions": list[Any],
        "contradiction": NotRequired[ForensicsContradiction | None],
        "counted": Any,
        "findings": list[ForensicsFinding],
        "lost_share": NotRequired[float | None],
        "mfu_of_the_others": NotRequired[float | None],
        "request": ForensicsRequest,
        "schema": NotRequired[int],
        "sources": list[Any],
    },
)

def forensics(
    run: str | None = ...,
    *,
    on: str | None = ...,
    format: str | None = ...,
    chip_hours: float | str | Mapping[str, float] | None = ...,
    chips: float | str | Mapping[str, float] | None = ...,
    days: float | str | Mapping[str, float] | None = ...,
    params: float | str | Mapping[str, float] | None = ...,
    tokens: float | str | Mapping[str, float] | None = ...,
    flop: float | str | Mapping[str, float] | None = ...,
    mfu: float | str | Mapping[str, float] | None = ...,
    peak: float | str | Mapping[str, float] | None = ...,
    price: float | str | Mapping[str, float] | None = ...,
    usd: float | str | Mapping[str, float] | None = ...,
    flop_per_param: float | str | None = ...,
    files: Mapping[str, str | Mapping[str, Any]] | None = ...,
    catalog: str | PathLike[str] | Catalog | None = ...,
) -> Answer[ForensicsData]:
    """What a published run must have been: any of its numbers from the others

    run: A published run to start from.
    on: The chip, for its dense peak.
    format: The format it computed in; bf16 unless given.
    chip_hours: Chip-hours.
    chips: Chips.
    days: Days from start to end.
    params: Active parameters.
    tokens: Training tokens.
    flop: Model arithmetic, FLOP.
    mfu: Share of the dense peak in use.
    peak: Dense peak of a chip, FLOP/s.
    price: Dollars per chip-hour.
    usd: Dollars of the run.
    flop_per_param: FLOP per parameter and token; 6 unless attention or recompute is counted.
    """

ReversibleAvalancheCard = TypedDict(
    "ReversibleAvalancheCard",
    {
        "mixer": str,
        "share": list[float],
    },
)

ReversibleMark = TypedDict(
    "ReversibleMark",
    {
        "label": Any,
        "x": float,
        "y": float,
    },
)

ReversibleSeries = TypedDict(
    "ReversibleSeries",
    {
        "name": Any,
        "points": list[list[Any]],
        "role": Any,
    },
)

ReversibleAxis = TypedDict(
    "ReversibleAxis",
    {
        "label": str,
        "scale": Any,
        "unit": Any,
    },
)

ReversibleFigure = TypedDict(
    "ReversibleFigure",
    {
        "marks": list[ReversibleMark],
        "series": list[ReversibleSeries],
        "subtitle": Any,
        "title": Any,
        "x": ReversibleAxis,
        "y": ReversibleAxis,
    },
)

ReversibleDriftCard = TypedDict(
    "ReversibleDriftCard",
    {
        "bf16": float,
        "depth": int,
        "f32": float,
        "fixed": float,
    },
)

ReversibleGradientCard = TypedDict(
    "ReversibleGradientCard",
    {
        "distance": float,
        "exact": bool,
        "stored": str,
    },
)

ReversibleFormulaCard = TypedDict(
    "ReversibleFormulaCard",
    {
        "activation_bytes": float,
        "forwards": float,
        "way": str,
    },
)

ReversibleRequest = TypedDict(
    "ReversibleRequest",
    {
        "depth": NotRequired[int],
        "model": NotRequired[str],
        "seed": NotRequired[int],
        "steps": NotRequired[int],
        "tokens": NotRequired[float],
        "values": NotRequired[float | None],
    },
)

ReversibleWay = TypedDict(
    "ReversibleWay",
    {
        "flop_over_ordinary": float,
        "formula": float,
        "losses": list[Any],
        "peak_bytes": list[list[Any]],
        "slope_bytes_per_block": float,
        "way": str,
    },
)

ReversibleData = TypedDict(
    "ReversibleData",
    {
        "assumptions": list[str],
        "avalanche": list[ReversibleAvalancheCard],
        "avalanche_figure": ReversibleFigure,
        "drift": list[ReversibleDriftCard],
        "drift_figure": ReversibleFigure,
        "feistel": list[Any],
        "gradients": list[ReversibleGradientCard],
        "memory_figure": ReversibleFigure,
        "model": list[ReversibleFormulaCard],
        "network": str,
        "request": ReversibleRequest,
        "schema": NotRequired[int],
        "slope_ratio": float,
        "ways": list[ReversibleWay],
    },
)

def reversible(
    model: str | PathLike[str] | Mapping[str, Any] | None = ...,
    *,
    values: float | str | None = ...,
    tokens: float | str | None = ...,
    depth: int | str | None = ...,
    steps: int | str | None = ...,
    seed: int | str | None = ...,
    files: Mapping[str, str | Mapping[str, Any]] | None = ...,
    catalog: str | PathLike[str] | Catalog | None = ...,
) -> Answer[ReversibleData]:
    """Reversible networks measured: memory, arithmetic, gradients, drift, and ciphers beside them

    values: Values of 2 bytes that a layer of it keeps for each token and width.
    model: A model of the catalogue for the closed forms.
    tokens: Tokens in flight per chip while training it: sequence times batch.
    depth: Deepest network to measure.
    steps: Training steps to run.
    seed: Seed of weights and batches.
    """

TrainChangeCard = TypedDict(
    "TrainChangeCard",
    {
        "chips": int,
        "layout": str,
        "memory_bytes": float,
        "step_s": float,
        "what": Any,
        "with": dict[str, Any],
    },
)

TrainMark = TypedDict(
    "TrainMark",
    {
        "label": Any,
        "x": float,
        "y": float,
    },
)

TrainSeries = TypedDict(
    "TrainSeries",
    {
        "name": Any,
        "points": list[list[Any]],
        "role": Any,
    },
)

TrainAxis = TypedDict(
    "TrainAxis",
    {
        "label": str,
        "scale": Any,
        "unit": Any,
    },
)

TrainFigure = TypedDict(
    "TrainFigure",
    {
        "marks": list[TrainMark],
        "series": list[TrainSeries],
        "subtitle": Any,
        "title": Any,
        "x": TrainAxis,
        "y": TrainAxis,
    },
)

TrainPartCard = TypedDict(
    "TrainPartCard",
    {
        "name": str,
        "share": float,
        "time_s": float,
    },
)

TrainPublishedCard = TypedDict(
    "TrainPublishedCard",
    {
        "chip_hours": NotRequired[list[Any] | None],
        "computed_chip_hours": NotRequired[float | None],
        "mfu": NotRequired[list[Any] | None],
        "name": str,
        "source": str,
    },
)

TrainSeek = TypedDict(
    "TrainSeek",
    {
        "days": NotRequired[float | None],
        "solve": NotRequired[Any],
    },
)

TrainRequest = TypedDict(
    "TrainRequest",
    {
        "chip_mtbf_hours": NotRequired[float | None],
        "chips": NotRequired[int | None],
        "chunked_loss": NotRequired[bool],
        "cp": NotRequired[int | None],
        "dp": NotRequired[int | None],
        "ep": NotRequired[int | None],
        "etp": NotRequired[int | None],
        "format": NotRequired[str | None],
        "global_batch": NotRequired[int | None],
        "host_gb_per_s": NotRequired[float | None],
        "keep": NotRequired[int],
        "law": NotRequired[str | None],
        "lighter_ends": NotRequired[bool | None],
        "lora": NotRequired[int | None],
        "lora_targets": NotRequired[Any],
        "loss": NotRequired[float | None],
        "mean_tokens": NotRequired[float | None],
        "micro_batch": NotRequired[int | None],
        "model": NotRequired[str | None],
        "offload": NotRequired[Any],
        "on": NotRequired[str | None],
        "optimizer": NotRequired[Any],
        "peaks": NotRequired[bool],
        "pp": NotRequired[int | None],
        "price_usd_per_chip_hour": NotRequired[float | None],
        "qlora": NotRequired[bool],
        "recompute": NotRequired[Any],
        "restart_s": NotRequired[float],
        "run": NotRequired[str | None],
        "schedule": NotRequired[str | None],
        "search": NotRequired[bool],
        "seek": NotRequired[TrainSeek],
        "sequence": NotRequired[int | None],
        "sequence_parallel": NotRequired[bool | None],
        "sharding": NotRequired[Any],
        "stack": NotRequired[str | None],
        "stall_s": NotRequired[float],
        "tokens": NotRequired[float | None],
        "tp": NotRequired[int | None],
        "virtual_stages": NotRequired[int | None],
        "wide": NotRequired[bool],
    },
)

TrainEnergyCard = TypedDict(
    "TrainEnergyCard",
    {
        "chip_watts": float,
        "includes": Any,
        "kwh": float,
    },
)

TrainBand = TypedDict(
    "TrainBand",
    {
        "high": float,
        "low": float,
        "median": float,
    },
)

TrainSpread = TypedDict(
    "TrainSpread",
    {
        "narrow": NotRequired[TrainBand | None],
        "wide": TrainBand,
    },
)

TrainLossCard = TypedDict(
    "TrainLossCard",
    {
        "law": str,
        "least": float,
        "loss": float,
        "outside": list[Any],
        "tokens_spread": NotRequired[TrainSpread | None],
    },
)

TrainRunCard = TypedDict(
    "TrainRunCard",
    {
        "assumptions": list[Any],
        "checkpoint_bytes": float,
        "checkpoint_bytes_per_s": NotRequired[float | None],
        "checkpoint_every_s": NotRequired[float | None],
        "chip_hours": NotRequired[float | None],
        "cost_usd": NotRequired[float | None],
        "effective_mfu": float,
        "energy": NotRequired[TrainEnergyCard | None],
        "failures": NotRequired[float | None],
        "goodput": float,
        "job_mtbf_hours": float,
        "loss": NotRequired[TrainLossCard | None],
        "tokens": NotRequired[float | None],
        "wall_days": NotRequired[float | None],
        "work_days": NotRequired[float | None],
    },
)

TrainLayoutCard = TypedDict(
    "TrainLayoutCard",
    {
        "chip_hours_per_mtok": float,
        "chips": int,
        "layout": str,
        "memory_bytes": float,
        "step_s": float,
        "with": dict[str, Any],
    },
)

TrainSearchCard = TypedDict(
    "TrainSearchCard",
    {
        "best": list[TrainLayoutCard],
        "evaluated": int,
        "feasible": int,
        "frontier": list[TrainLayoutCard],
    },
)

TrainSolvedChips = TypedDict(
    "TrainSolvedChips",
    {
        "chips": NotRequired[int | None],
        "deadline_days": NotRequired[float | None],
        "fewer": NotRequired[int | None],
        "verdict": Any,
    },
)

TrainStageMemory = TypedDict(
    "TrainStageMemory",
    {
        "activation_bytes": float,
        "gradient_bytes": float,
        "layers": int,
        "logit_bytes": float,
        "optimizer_bytes": float,
        "other_bytes": float,
        "stage": int,
        "total_bytes": float,
        "weight_bytes": float,
    },
)

TrainPeakCard = TypedDict(
    "TrainPeakCard",
    {
        "chip_bytes": float,
        "fits": bool,
        "host_bytes": float,
        "when": Any,
    },
)

TrainTunedCard = TypedDict(
    "TrainTunedCard",
    {
        "adapter_bytes": NotRequired[float | None],
        "allocated_bytes": float,
        "full_memory_bytes": NotRequired[float | None],
        "full_step_s": NotRequired[float | None],
        "largest_micro_batch": NotRequired[int | None],
        "peaks": list[TrainPeakCard],
        "quicker": NotRequired[Any],
        "says": Any,
        "trained_params": float,
        "trained_share": float,
        "useful_tokens_per_s": NotRequired[float | None],
    },
)

TrainData = TypedDict(
    "TrainData",
    {
        "bound_s": float,
        "by_others": NotRequired[Any],
        "capacity_bytes": float,
        "changes": list[TrainChangeCard],
        "chips": int,
        "cost_usd": NotRequired[float | None],
        "days": NotRequired[float | None],
        "evidence": Any,
        "figure": NotRequired[TrainFigure | None],
        "fits": bool,
        "flop_per_s_per_chip": float,
        "idle_chips": int,
        "layout": str,
        "machine": str,
        "mfu": float,
        "mfu_counted": Any,
        "micro_batches": int,
        "model": str,
        "parts": list[TrainPartCard],
        "priced": NotRequired[Any],
        "published": NotRequired[TrainPublishedCard | None],
        "request": TrainRequest,
        "run": NotRequired[TrainRunCard | None],
        "schema": NotRequired[int],
        "search": NotRequired[TrainSearchCard | None],
        "solved": NotRequired[TrainSolvedChips | None],
        "sources": list[str],
        "stack": str,
        "stages": list[TrainStageMemory],
        "step_s": float,
        "tokens_per_s": float,
        "too_long": NotRequired[Any],
        "tuned": NotRequired[TrainTunedCard | None],
        "verdict": NotRequired[Any],
        "with": dict[str, Any],
    },
)

def train(
    model: str | PathLike[str] | Mapping[str, Any] | None = ...,
    *,
    chunked_loss: bool | None = ...,
    lora: int | str | None = ...,
    lora_targets: Literal["all", "attention", "qv", "mlp", "all-linear", "attn", "ffn"] | None = ...,
    mean_tokens: float | str | None = ...,
    optimizer: Literal["adamw", "adamw-bf16", "adamw-8bit", "sgd", "adam", "adam-bf16", "adam-8bit"] | None = ...,
    peaks: bool | None = ...,
    qlora: bool | None = ...,
    days: float | str | None = ...,
    solve: Literal["chips"] | None = ...,
    run: str | None = ...,
    on: str | PathLike[str] | Mapping[str, Any] | None = ...,
    chips: int | str | None = ...,
    stack: str | None = ...,
    format: Literal["bf16", "fp16", "fp8", "mxfp8", "nvfp4"] | None = ...,
    sequence: int | str | None = ...,
    batch: int | str | None = ...,
    tp: int | str | None = ...,
    cp: int | str | None = ...,
    pp: int | str | None = ...,
    dp: int | str | None = ...,
    virtual_stages: int | str | None = ...,
    ep: int | str | None = ...,
    etp: int | str | None = ...,
    micro_batch: int | str | None = ...,
    schedule: Literal["gpipe", "1f1b", "interleaved", "zb-h1", "zb-h2", "zbv", "v-half", "v-min", "dualpipe", "dualpipev"] | None = ...,
    sharding: Literal["none", "zero1", "zero2", "zero3", "zero0", "ddp", "fsdp"] | None = ...,
    recompute: Literal["none", "selective", "cheap", "full", "reversible", "off"] | None = ...,
    offload: Literal["none", "optimizer", "activations", "both", "off", "all"] | None = ...,
    sequence_parallel: bool | None = ...,
    lighter_ends: bool | None = ...,
    host_bandwidth: float | str | None = ...,
    tokens: float | str | None = ...,
    loss: float | str | None = ...,
    law: str | None = ...,
    chip_mtbf: float | str | None = ...,
    stall: float | str | None = ...,
    restart: float | str | None = ...,
    price: float | str | None = ...,
    search: bool | None = ...,
    wide: bool | None = ...,
    keep: int | str | None = ...,
    files: Mapping[str, str | Mapping[str, Any]] | None = ...,
    catalog: str | PathLike[str] | Catalog | None = ...,
) -> Answer[TrainData]:
    """A training run: step time by its parts, memory by stage, days and dollars, or the best layout

    chunked_loss: Computes the loss in eight chunks of the sequence, so that logits are never there all at once.
    lora: Trains low-rank adapters (LoRA) of this rank beside frozen weights, instead of all weights.
    lora_targets: Beside which matrices adapters stand.
    mean_tokens: Mean tokens of a sequence that is padded, not packed.
    optimizer: What the optimizer keeps; paged optimizers are --offload optimizer.
    peaks: Shows memory while loading, at the first update and at a checkpoint as well.
    qlora: The same with the frozen weights in 4 bits (QLoRA: nf4, scales quantised again).
    days: Days in which the run has to end, failures included.
    solve: What to solve for: the fewest chips that hold the run, or end it in time.
    model: Model: a catalogue id, an alias, or a Hugging Face id.
    run: A published run: its model, machine, batch, tokens and layout, where flags do not say otherwise.
    on: Machine: a system, a chip, or so many chips such as 512xh100.
    chips: Chips, instead of the machine's.
    stack: Training program whose constants are used; one that suits the chip unless given.
    format: Format of the matrix products.
    sequence: Tokens of a sequence.
    batch: Sequences of a step.
    tp: Tensor parallel. Where no degree is given the best layout is looked for; else those not given are 1.
    cp: Context parallel.
    pp: Pipeline stages.
    dp: Data parallel: copies of the model.
    virtual_stages: Chunks of layers per stage.
    ep: Expert parallel.
    etp: Shards of an expert.
    micro_batch: Sequences of a micro-batch.
    schedule: Order of passes; interleaved with chunks, else 1f1b.
    sharding: What copies divide; zero1 unless given or looked for.
    recompute: What is run again; cheap is norms, activation functions and latents' up-projections, reversible is for a model of reversible blocks.
    offload: What waits in the host's memory.
    sequence_parallel: Whether tensor-parallel groups cut norms along the sequence; yes unless given.
    lighter_ends: Whether embedding and head take the place of a layer on the first and the last stage.
    host_bandwidth: Bandwidth from a chip to its host in one direction, instead of the catalogue's.
    tokens: Tokens of the whole run.
    loss: A loss to reach, instead of tokens.
    law: The scaling law that turns a loss into tokens, or tokens into a loss.
    chip_mtbf: Mean time between failures of one chip, instead of that of the largest published run.
    stall: Pause for a checkpoint.
    restart: From a failure to work again.
    price: Price per chip and hour in dollars, instead of the catalogue's.
    search: Looks for the best layout also where degrees are given: those stay, the rest is open.
    wide: Searches every schedule and offloading as well.
    keep: Layouts to list.
    """

RlMemoryCard = TypedDict(
    "RlMemoryCard",
    {
        "cache_bytes": float,
        "capacity_bytes": float,
        "engine_bytes": float,
        "engine_resident_bytes": float,
        "generating_bytes": float,
        "peak_bytes": float,
        "trainer_bytes": float,
        "trainer_resident_bytes": float,
        "training_bytes": float,
    },
)

RlPartCard = TypedDict(
    "RlPartCard",
    {
        "name": str,
        "share": float,
        "time_s": float,
    },
)

RlDegreesRequest = TypedDict(
    "RlDegreesRequest",
    {
        "cp": NotRequired[int | None],
        "dcp": NotRequired[int | None],
        "dp": NotRequired[int | None],
        "ep": NotRequired[int | None],
        "etp": NotRequired[int | None],
        "pp": NotRequired[int | None],
        "redundant": NotRequired[int | None],
        "tp": NotRequired[int | None],
    },
)

RlRequest = TypedDict(
    "RlRequest",
    {
        "asynchronous": NotRequired[bool],
        "chips": NotRequired[int | None],
        "engine": NotRequired[str],
        "isl": NotRequired[float],
        "longest": NotRequired[float],
        "lora": NotRequired[int | None],
        "memory_utilisation": NotRequired[float | None],
        "model": NotRequired[str],
        "offload_trainer": NotRequired[bool],
        "on": NotRequired[str],
        "osl": NotRequired[str],
        "price_usd_per_chip_hour": NotRequired[float | None],
        "prompts": NotRequired[int],
        "recompute": NotRequired[Any],
        "rollout": NotRequired[RlDegreesRequest],
        "rollout_chips": NotRequired[int | None],
        "samples": NotRequired[int],
        "scoring_passes": NotRequired[float],
        "sharding": NotRequired[Any],
        "sleep": NotRequired[Any],
        "stack": NotRequired[str | None],
        "trainer": NotRequired[RlDegreesRequest],
        "update": NotRequired[Any],
        "updates": NotRequired[int],
    },
)

RlRolloutCard = TypedDict(
    "RlRolloutCard",
    {
        "answers": int,
        "engine": str,
        "layout": str,
        "longest_tokens": float,
        "mean_tokens": float,
        "output_tok_s": float,
        "places": float,
        "prompts_s": float,
        "replicas": int,
        "running": float,
        "tail_s": float,
        "time_s": float,
    },
)

RlSplitCard = TypedDict(
    "RlSplitCard",
    {
        "fits": bool,
        "rollout_chips": int,
        "rollout_waits_s": float,
        "step_s": float,
        "train_chips": int,
        "train_waits_s": float,
    },
)

RlTrainerCard = TypedDict(
    "RlTrainerCard",
    {
        "layout": str,
        "mfu": float,
        "scoring_pass_s": float,
        "stack": str,
        "time_s": float,
    },
)

RlUpdateCard = TypedDict(
    "RlUpdateCard",
    {
        "bytes": float,
        "rate_gb_per_s": float,
        "time_s": float,
        "way": Any,
    },
)

RlData = TypedDict(
    "RlData",
    {
        "assumptions": list[Any],
        "chips": int,
        "colocated": bool,
        "fits": bool,
        "machine": str,
        "memory": RlMemoryCard,
        "model": str,
        "parts": list[RlPartCard],
        "priced": NotRequired[Any],
        "request": RlRequest,
        "rollout": RlRolloutCard,
        "rollout_chips": int,
        "rollout_waits_s": float,
        "schema": NotRequired[int],
        "splits": list[RlSplitCard],
        "step_s": float,
        "synchronous_step_s": float,
        "tokens": float,
        "tokens_per_s_per_chip": float,
        "train_chips": int,
        "train_waits_s": float,
        "trainer": RlTrainerCard,
        "update": RlUpdateCard,
        "usd_per_mtok": NotRequired[float | None],
        "usd_per_step": NotRequired[float | None],
        "verdict": Any,
    },
)

def rl(
    model: str | PathLike[str] | Mapping[str, Any] | None = ...,
    *,
    lora: int | str | None = ...,
    on: str | PathLike[str] | Mapping[str, Any] | None = ...,
    chips: int | str | None = ...,
    rollout_chips: int | str | None = ...,
    async_: bool | None = ...,
    prompts: int | str | None = ...,
    samples: int | str | None = ...,
    isl: float | str | None = ...,
    osl: str | None = ...,
    longest: float | str | None = ...,
    engine: str | None = ...,
    rollout_dcp: int | str | None = ...,
    rollout_tp: int | str | None = ...,
    rollout_pp: int | str | None = ...,
    rollout_dp: int | str | None = ...,
    rollout_cp: int | str | None = ...,
    rollout_ep: int | str | None = ...,
    rollout_etp: int | str | None = ...,
    rollout_redundant_experts: int | str | None = ...,
    train_dcp: int | str | None = ...,
    train_tp: int | str | None = ...,
    train_pp: int | str | None = ...,
    train_dp: int | str | None = ...,
    train_cp: int | str | None = ...,
    train_ep: int | str | None = ...,
    train_etp: int | str | None = ...,
    train_redundant_experts: int | str | None = ...,
    sharding: Literal["none", "zero1", "zero2", "zero3", "zero0", "ddp", "fsdp"] | None = ...,
    recompute: Literal["none", "selective", "cheap", "full", "reversible", "off"] | None = ...,
    stack: str | None = ...,
    updates: int | str | None = ...,
    scoring_passes: float | str | None = ...,
    sleep: Literal["keep", "weights", "all"] | None = ...,
    offload_trainer: bool | None = ...,
    update: Literal["broadcast", "shards"] | None = ...,
    gpu_memory_utilization: float | str | None = ...,
    price: float | str | None = ...,
    files: Mapping[str, str | Mapping[str, Any]] | None = ...,
    catalog: str | PathLike[str] | Catalog | None = ...,
) -> Answer[RlData]:
    """Reinforcement learning: answers drawn beside training, memory of both, who waits, what a step costs

    lora: Trains adapters of this rank (LoRA); only they travel.
    model: Model that is trained: a catalogue id, an alias, or a Hugging Face id.
    on: Machine: a system, a chip, or so many chips such as 16xh100: all chips, of both sides.
    chips: Chips of both sides, instead of the machine's.
    rollout_chips: Of these, chips that only draw answers; without it both sides share all chips, or, with --async, the best split is found.
    async_: Draws the next answers while the last ones train (one step off), on chips apart.
    prompts: Prompts of a step.
    samples: Answers drawn for each prompt.
    isl: Tokens of a prompt.
    osl: Tokens of answers: a number, or a distribution such as lognormal:mean=2k,cv=1, exponential:mean=2k, uniform:1k..4k.
    longest: The longest answer allowed: others are cut.
    engine: The engine that draws answers, with a version where it matters.
    rollout_dcp: Decode context parallel: chips of a tensor-parallel group that share the tokens of a cache.
    rollout_tp: Tensor parallel.
    rollout_pp: Pipeline parallel.
    rollout_dp: Data parallel.
    rollout_cp: Context parallel.
    rollout_ep: Expert parallel.
    rollout_etp: Expert tensor parallel.
    rollout_redundant_experts: Redundant experts per layer.
    train_dcp: Decode context parallel: chips of a tensor-parallel group that share the tokens of a cache.
    train_tp: Tensor parallel.
    train_pp: Pipeline parallel.
    train_dp: Data parallel.
    train_cp: Context parallel.
    train_ep: Expert parallel.
    train_etp: Expert tensor parallel.
    train_redundant_experts: Redundant experts per layer.
    sharding: What copies of the trainer divide.
    recompute: What the trainer runs again.
    stack: Training program whose constants are used; one that suits the chip unless given.
    updates: Updates of the weights in a step: the answers are divided among them.
    scoring_passes: Forward passes that score all answers before training: their own probabilities and a reference's are two.
    sleep: What the engine gives up while chips that do both train.
    offload_trainer: Whether the trainer's weights, gradients and states wait in the host's memory while answers are drawn.
    update: How new weights reach the engine.
    gpu_memory_utilization: Share of a chip's memory the engine takes.
    price: Price per chip and hour in dollars, instead of the catalogue's.
    """

MfuLine = TypedDict(
    "MfuLine",
    {
        "convention": Any,
        "flop_per_s_per_chip": float,
        "flop_per_token": float,
        "mfu": float,
        "used_by": str,
    },
)

MfuRequest = TypedDict(
    "MfuRequest",
    {
        "convention": NotRequired[Any],
        "format": NotRequired[str],
        "mfu": NotRequired[float | None],
        "model": NotRequired[str],
        "on": NotRequired[str],
        "recompute": NotRequired[Any],
        "sequence": NotRequired[int],
        "tflop_per_s_per_chip": NotRequired[float | None],
        "tokens_per_s_per_chip": NotRequired[float | None],
    },
)

MfuData = TypedDict(
    "MfuData",
    {
        "chip": str,
        "lines": list[MfuLine],
        "model": str,
        "peak_flop_per_s": float,
        "request": MfuRequest,
        "schema": NotRequired[int],
        "tokens_per_s_per_chip": float,
    },
)

def mfu(
    model: str | PathLike[str] | Mapping[str, Any] | None = ...,
    *,
    on: str | PathLike[str] | Mapping[str, Any] | None = ...,
    format: Literal["bf16", "fp16", "fp8", "mxfp8", "nvfp4"] | None = ...,
    sequence: int | str | None = ...,
    tokens_per_s: float | str | None = ...,
    tflops: float | str | None = ...,
    mfu: float | str | None = ...,
    convention: Literal["full", "causal", "hardware", "over-count", "6nd", "6nd-multiplied", "6nd-scores"] | None = ...,
    recompute: Literal["none", "selective", "cheap", "full", "reversible", "off"] | None = ...,
    files: Mapping[str, str | Mapping[str, Any]] | None = ...,
    catalog: str | PathLike[str] | Catalog | None = ...,
) -> Answer[MfuData]:
    """One run's FLOP per second in every convention in use

    model: Model: a catalogue id, an alias, or a Hugging Face id.
    on: Chip or machine.
    format: Format whose peak counts.
    sequence: Tokens of a sequence.
    tokens_per_s: Tokens per second and chip.
    tflops: Or TFLOP per second and chip, in the convention below.
    mfu: Or a share of the peak, 0 to 1, in the convention below.
    convention: How the last two were counted.
    recompute: What the run computed again.
    """

DeduceBlindCard = TypedDict(
    "DeduceBlindCard",
    {
        "copies": int,
        "hosts": int,
        "input_usd_per_mtok": float,
        "model": str,
        "output_usd_per_mtok": float,
    },
)

DeduceClosedCard = TypedDict(
    "DeduceClosedCard",
    {
        "formula": str,
        "id": str,
        "note": Any,
        "unit": str,
        "value": float,
        "what": Any,
    },
)

DeduceDatumCard = TypedDict(
    "DeduceDatumCard",
    {
        "bits_active": float,
        "bits_kv": float,
        "cannot_tell": Any,
        "name": str,
        "policy": NotRequired[float | None],
    },
)

DeduceChoiceCard = TypedDict(
    "DeduceChoiceCard",
    {
        "name": str,
        "posterior": float,
        "prior": float,
    },
)

DeduceMark = TypedDict(
    "DeduceMark",
    {
        "label": Any,
        "x": float,
        "y": float,
    },
)

DeduceSeries = TypedDict(
    "DeduceSeries",
    {
        "name": Any,
        "points": list[list[Any]],
        "role": Any,
    },
)

DeduceAxis = TypedDict(
    "DeduceAxis",
    {
        "label": str,
        "scale": Any,
        "unit": Any,
    },
)

DeduceFigure = TypedDict(
    "DeduceFigure",
    {
        "marks": list[DeduceMark],
        "series": list[DeduceSeries],
        "subtitle": Any,
        "title": Any,
        "x": DeduceAxis,
        "y": DeduceAxis,
    },
)

DeduceRequest = TypedDict(
    "DeduceRequest",
    {
        "as_of": NotRequired[str | None],
        "blind": NotRequired[str | None],
        "cached_usd_per_mtok": NotRequired[float | None],
        "fast_price_multiple": NotRequired[float | None],
        "fast_speed_multiple": NotRequired[float | None],
        "first_party": NotRequired[bool | None],
        "hosts": NotRequired[int | None],
        "input_usd_per_mtok": NotRequired[float | None],
        "log2_points": NotRequired[int],
        "long_above_tokens": NotRequired[float | None],
        "long_input_usd_per_mtok": NotRequired[float | None],
        "long_output_usd_per_mtok": NotRequired[float | None],
        "model": NotRequired[str | None],
        "output_usd_per_mtok": NotRequired[float | None],
        "seed": NotRequired[int],
        "sheet": NotRequired[str | None],
        "storage_usd_per_mtok_hour": NotRequired[float | None],
        "tokens_per_s": NotRequired[float | None],
        "vendor": NotRequired[str | None],
        "write_1h_usd_per_mtok": NotRequired[float | None],
        "write_5m_usd_per_mtok": NotRequired[float | None],
    },
)

DeduceRidgeCard = TypedDict(
    "DeduceRidgeCard",
    {
        "active_with_markup": float,
        "axis": list[list[Any]],
    },
)

DeduceSampler = TypedDict(
    "DeduceSampler",
    {
        "ess": float,
        "pareto_k": float,
        "points": int,
        "tempered": int,
    },
)

DeduceShapeCard = TypedDict(
    "DeduceShapeCard",
    {
        "kv_bytes_per_token": float,
        "shape": Any,
    },
)

DeduceUnknownCard = TypedDict(
    "DeduceUnknownCard",
    {
        "bits": float,
        "id": Any,
        "inside": NotRequired[bool | None],
        "name": str,
        "p10": float,
        "p50": float,
        "p90": float,
        "prior_p10": float,
        "prior_p50": float,
        "prior_p90": float,
        "truth": NotRequired[float | None],
        "unit": str,
    },
)

DeduceData = TypedDict(
    "DeduceData",
    {
        "assumptions": list[Any],
        "blind": NotRequired[DeduceBlindCard | None],
        "cannot_tell": list[Any],
        "closed": list[DeduceClosedCard],
        "data": list[DeduceDatumCard],
        "dense": DeduceChoiceCard,
        "figure": DeduceFigure,
        "policies": list[Any],
        "refused": NotRequired[Any],
        "request": DeduceRequest,
        "ridge": DeduceRidgeCard,
        "ridge_figure": DeduceFigure,
        "sampler": DeduceSampler,
        "schema": NotRequired[int],
        "seller": str,
        "shapes": list[DeduceShapeCard],
        "shapes_of": Any,
        "sources": list[Any],
        "tiers": list[DeduceChoiceCard],
        "title": Any,
        "unknowns": list[DeduceUnknownCard],
        "warnings": list[Any],
        "widths": list[DeduceChoiceCard],
    },
)

def deduce(
    sheet: str | PathLike[str] | Mapping[str, Any] | None = ...,
    *,
    as_of: str | None = ...,
    model: str | None = ...,
    vendor: str | None = ...,
    first_party: bool | None = ...,
    input: float | str | None = ...,
    output: float | str | None = ...,
    cached: float | str | None = ...,
    write_5m: float | str | None = ...,
    write_1h: float | str | None = ...,
    storage: float | str | None = ...,
    long_above: float | str | None = ...,
    long_input: float | str | None = ...,
    long_output: float | str | None = ...,
    fast_price: float | str | None = ...,
    fast_speed: float | str | None = ...,
    tokens_per_s: float | str | None = ...,
    hosts: int | str | None = ...,
    blind: str | None = ...,
    points: int | str | None = ...,
    seed: int | str | None = ...,
    files: Mapping[str, str | Mapping[str, Any]] | None = ...,
    catalog: str | PathLike[str] | Catalog | None = ...,
) -> Answer[DeduceData]:
    """What a price sheet says about the model behind it, with error bars

    sheet: A price sheet of the catalogue, or the path of a .toml file with units; what is given beside it wins over it.
    as_of: When the prices of the sheet held, as 2026-08-08.
    model: What is sold, for the title.
    vendor: Who sells: a vendor of the catalogue's policies, whose fixed ratios then count as policy. None for a host of open weights.
    first_party: Whether a closed model's maker sells; makers charge more and vary more. Taken from the vendor when left out.
    input: Input price.
    output: Output price.
    cached: Cached-read price.
    write_5m: Price of a cache write kept for five minutes.
    write_1h: Price of a cache write kept for an hour.
    storage: Storage price.
    long_above: Tokens from which long-context prices apply.
    long_input: Input price above.
    long_output: Output price above.
    fast_price: Price multiple of a fast mode.
    fast_speed: Its speed multiple.
    tokens_per_s: Measured tokens per second of one user.
    hosts: Hosts whose median the prices are; 1 unless the sheet says more.
    blind: An open model to deduce from its hosts' prices with its architecture hidden.
    points: Binary logarithm of the number of points, 12 to 20.
    seed: Seed.
    """

PlanMark = TypedDict(
    "PlanMark",
    {
        "label": Any,
        "x": float,
        "y": float,
    },
)

PlanSeries = TypedDict(
    "PlanSeries",
    {
        "name": Any,
        "points": list[list[Any]],
        "role": Any,
    },
)

PlanAxis = TypedDict(
    "PlanAxis",
    {
        "label": str,
        "scale": Any,
        "unit": Any,
    },
)

PlanFigure = TypedDict(
    "PlanFigure",
    {
        "marks": list[PlanMark],
        "series": list[PlanSeries],
        "subtitle": Any,
        "title": Any,
        "x": PlanAxis,
        "y": PlanAxis,
    },
)

PlanPoint = TypedDict(
    "PlanPoint",
    {
        "chips_per_replica": int,
        "concurrency_per_group": float,
        "deployment": Any,
        "index": int,
        "tok_s_per_chip": float,
        "tok_s_per_user": float,
        "tpot_ms": float,
        "ttft_ms": float,
        "usd_per_mtok": float,
    },
)

PlanPartCard = TypedDict(
    "PlanPartCard",
    {
        "chips": int,
        "machine": str,
        "most_per_s": float,
        "plan": NotRequired[int | None],
        "rate_per_s": float,
        "share": float,
        "usd_per_hour": float,
        "why": Any,
    },
)

PlanBoards = TypedDict(
    "PlanBoards",
    {
        "chip_w": float,
        "joules_per_token": float,
        "measured": bool,
    },
)

PlanRange = TypedDict(
    "PlanRange",
    {
        "high": float,
        "low": float,
        "value": float,
    },
)

PlanPartGrade = TypedDict(
    "PlanPartGrade",
    {
        "grade": Any,
        "part": str,
        "says": Any,
    },
)

PlanCarried = TypedDict(
    "PlanCarried",
    {
        "from": NotRequired[str | None],
        "step": str,
        "what": str,
    },
)

PlanFactors = TypedDict(
    "PlanFactors",
    {
        "throughput": float,
        "tpot": float,
        "ttft": float,
    },
)

PlanEvidence = TypedDict(
    "PlanEvidence",
    {
        "chip": str,
        "engine": str,
        "grade": Any,
        "model": str,
        "off": NotRequired[float | None],
        "parts": list[PlanPartGrade],
        "rows": int,
        "says": Any,
        "steps": list[PlanCarried],
        "within": PlanFactors,
    },
)

PlanCommand = TypedDict(
    "PlanCommand",
    {
        "flags": str,
        "line": str,
        "role": str,
    },
)

PlanFile = TypedDict(
    "PlanFile",
    {
        "name": str,
        "text": str,
    },
)

PlanHandover = TypedDict(
    "PlanHandover",
    {
        "commands": list[PlanCommand],
        "files": list[PlanFile],
        "notes": list[str],
    },
)

PlanMeanTraffic = TypedDict(
    "PlanMeanTraffic",
    {
        "chips": int,
        "domains": int,
        "peak_rate_per_s": float,
        "power_kw": float,
        "rate_per_s": float,
        "replicas": int,
        "usd_per_hour": float,
        "usd_per_mtok_always_on": float,
    },
)

PlanOffloadCard = TypedDict(
    "PlanOffloadCard",
    {
        "bytes_per_prompt": float,
        "hit": float,
        "load_ms": float,
        "tier": str,
    },
)

PlanTimes = TypedDict(
    "PlanTimes",
    {
        "limit_ms": NotRequired[float | None],
        "mean_ms": float,
        "metric": Any,
        "p50_ms": float,
        "p90_ms": float,
        "p99_ms": float,
        "percentile": NotRequired[float | None],
        "percentile_ms": NotRequired[float | None],
    },
)

PlanPercentiles = TypedDict(
    "PlanPercentiles",
    {
        "goodput": NotRequired[float | None],
        "queue_grows": bool,
        "requests": int,
        "seed": int,
        "times": list[PlanTimes],
    },
)

PlanPoolPlan = TypedDict(
    "PlanPoolPlan",
    {
        "chips": int,
        "chunk": float,
        "decode_instances": int,
        "instances": int,
        "layout": str,
        "system": str,
    },
)

PlanSpareCard = TypedDict(
    "PlanSpareCard",
    {
        "available": float,
        "available_without": float,
        "by_target": bool,
        "needed": int,
        "replicas": int,
        "up": float,
    },
)

PlanPiece = TypedDict(
    "PlanPiece",
    {
        "ms": float,
        "share": float,
        "what": Any,
    },
)

PlanBreakdown = TypedDict(
    "PlanBreakdown",
    {
        "decode_ms": float,
        "ideal_ms": float,
        "limits": list[PlanPiece],
        "losses": list[PlanPiece],
        "mixed_ms": float,
        "of_limit": float,
        "parts": list[PlanPiece],
        "step_ms": float,
    },
)

PlanSure = TypedDict(
    "PlanSure",
    {
        "e2e_ms": float,
        "share": float,
        "throughput_tok_s": float,
        "tpot_ms": float,
        "ttft_ms": float,
        "usd_per_mtok": float,
    },
)

PlanPlan = TypedDict(
    "PlanPlan",
    {
        "boards": NotRequired[PlanBoards | None],
        "bound_by": str,
        "busy": float,
        "chips": int,
        "chips_per_replica": int,
        "chunk": float,
        "concurrency": float,
        "concurrency_per_group": float,
        "deployment": Any,
        "domains": int,
        "drafts": float,
        "e2e_ms": PlanRange,
        "engine": str,
        "evidence": NotRequired[PlanEvidence | None],
        "handover": NotRequired[PlanHandover | None],
        "headroom": float,
        "index": int,
        "joules_per_token": float,
        "kv": str,
        "launch": list[str],
        "layout": str,
        "mean_traffic": NotRequired[PlanMeanTraffic | None],
        "offload": NotRequired[PlanOffloadCard | None],
        "percentiles": NotRequired[PlanPercentiles | None],
        "power_kw": float,
        "prefill": NotRequired[PlanPoolPlan | None],
        "pretended": NotRequired[Any],
        "price_kind": str,
        "replicas": int,
        "sequences": float,
        "spare": NotRequired[PlanSpareCard | None],
        "step": NotRequired[PlanBreakdown | None],
        "sure": NotRequired[PlanSure | None],
        "system": str,
        "throughput_tok_s": float,
        "tok_s_per_chip": PlanRange,
        "tok_s_per_user": PlanRange,
        "tpot_ms": PlanRange,
        "ttft_ms": PlanRange,
        "usd_per_hour": float,
        "usd_per_mtok": PlanRange,
        "weights": str,
        "why": Any,
    },
)

PlanRelaxation = TypedDict(
    "PlanRelaxation",
    {
        "asked": Any,
        "by": Any,
        "factor": float,
        "limit": str,
        "needed": Any,
    },
)

PlanShadow = TypedDict(
    "PlanShadow",
    {
        "limit": Any,
        "looser": NotRequired[float | None],
        "tighter": NotRequired[float | None],
    },
)

PlanNeeded = TypedDict(
    "PlanNeeded",
    {
        "chips": int,
        "headroom": float,
        "on_offer": bool,
        "replicas": int,
        "users": NotRequired[int | None],
    },
)

PlanMeasured = TypedDict(
    "PlanMeasured",
    {
        "goodput": NotRequired[float | None],
        "headroom": float,
        "mean_holds": bool,
        "needed": NotRequired[PlanNeeded | None],
        "p90_holds": bool,
        "p99_holds": bool,
        "queue_grows": bool,
        "runs": int,
        "sequences": NotRequired[int | None],
        "times": list[PlanTimes],
    },
)

PlanTrial = TypedDict(
    "PlanTrial",
    {
        "deployment": Any,
        "index": int,
        "measured": NotRequired[PlanMeasured | None],
        "verdict": Any,
    },
)

PlanSimulated = TypedDict(
    "PlanSimulated",
    {
        "assumptions": list[Any],
        "requests": int,
        "seed": int,
        "trials": list[PlanTrial],
    },
)

PlanData = TypedDict(
    "PlanData",
    {
        "assumptions": list[Any],
        "because": list[Any],
        "configurations": int,
        "figure": PlanFigure,
        "frontier": list[PlanPoint],
        "gaps": list[Any],
        "layouts": int,
        "layouts_that_fit": int,
        "limits": list[Any],
        "model": str,
        "objective": Any,
        "part_of_host": NotRequired[Any],
        "parts": list[PlanPartCard],
        "plans": list[PlanPlan],
        "relaxations": list[PlanRelaxation],
        "schema": NotRequired[int],
        "shadow_prices": list[PlanShadow],
        "simulated": NotRequired[PlanSimulated | None],
        "systems": list[str],
        "verdict": Any,
        "workload": Any,
    },
)

def plan(
    model: str | PathLike[str] | Mapping[str, Any] | None = ...,
    *,
    availability: float | str | None = ...,
    batch: int | str | None = ...,
    cache_headroom: float | str | None = ...,
    cost: float | str | None = ...,
    dcp: str | Sequence[int | str] | None = ...,
    failures_per_chip_year: float | str | None = ...,
    dp: int | str | None = ...,
    ep: int | str | None = ...,
    etp: int | str | None = ...,
    pp: int | str | None = ...,
    tp: int | str | None = ...,
    flags: str | None = ...,
    headroom: float | str | None = ...,
    offload_hit: float | str | None = ...,
    pretend: bool | None = ...,
    repair: float | str | None = ...,
    simulate: bool | None = ...,
    simulate_requests: int | str | None = ...,
    simulate_seed: int | str | None = ...,
    spare: int | str | None = ...,
    sure: float | str | None = ...,
    think: float | str | None = ...,
    users: float | str | None = ...,
    on: str | PathLike[str] | Mapping[str, Any] | None = ...,
    chips: int | str | None = ...,
    link: str | None = ...,
    quantization: str | Sequence[str] | None = ...,
    compute_dtype: str | None = ...,
    counting: Literal["strict", "lecture"] | None = ...,
    overlap: str | None = ...,
    price: float | str | None = ...,
    basis: Literal["owner-hyperscaler", "owner-neocloud", "rental", "on-demand", "spot", "owner", "contract", "reserved"] | None = ...,
    engine: str | Sequence[str] | None = ...,
    kv_cache_dtype: str | Sequence[str] | None = ...,
    chunks: str | Sequence[float | str] | None = ...,
    drafts: str | Sequence[float | str] | None = ...,
    acceptance: float | str | None = ...,
    aggregated: bool | None = ...,
    scenario: str | None = ...,
    isl: float | str | None = ...,
    osl: float | str | None = ...,
    prefix_hit: float | str | None = ...,
    rate: float | str | None = ...,
    ttft: float | str | None = ...,
    tpot: float | str | None = ...,
    e2e: float | str | None = ...,
    speed: float | str | None = ...,
    throughput: float | str | None = ...,
    no_whole_hosts: bool | None = ...,
    budget: float | str | None = ...,
    power: float | str | None = ...,
    objective: Literal["cost", "chips", "energy", "latency", "throughput", "goodput", "speed"] | None = ...,
    top: int | str | None = ...,
    isl_dist: str | None = ...,
    osl_dist: str | None = ...,
    peak: float | str | None = ...,
    trace: str | PathLike[str] | Mapping[str, Any] | None = ...,
    chips_per_host: int | str | None = ...,
    replay: str | None = ...,
    prefill_on: str | PathLike[str] | Mapping[str, Any] | None = ...,
    degrees: Literal["powers", "any"] | None = ...,
    files: Mapping[str, str | Mapping[str, Any]] | None = ...,
    catalog: str | PathLike[str] | Catalog | None = ...,
) -> Answer[PlanData]:
    """What to deploy for a model, traffic and latency targets: the best plan, the frontier, what each limit costs

    availability: Share of the time that all needed replicas are up, such as 99.9%: as many stand by as that takes.
    batch: Requests in flight in one attention group, instead of the best number.
    cache_headroom: Share of the memory for caches left free, at least.
    cost: Dollars per million output tokens, at most, such as 2: the best is then the fastest for a user, not the cheapest.
    dcp: Sizes of decode context parallel to try beside 1, with vLLM: chips that share the tokens of a cache instead of each keeping a copy.
    failures_per_chip_year: Failures of a chip in a year, where the catalogue's are not meant.
    dp: Data parallel.
    ep: Expert parallel.
    etp: Expert tensor parallel.
    pp: Pipeline parallel.
    tp: Tensor parallel.
    flags: A command line or flags of a server: its engine, formats, chunk, sequences, share of memory and degrees are taken over.
    headroom: Share of the load that is kept free: more replicas than the rate alone needs.
    offload_hit: Share of a prompt found in host memory, beyond what is found on the chips: a choice of the plan when given.
    pretend: Computes what the engine, the chip or the model's context do not allow, and says that it does not exist.
    repair: Time until a failed replica serves again.
    simulate: Simulates the best few under the traffic, request by request, and says what holds at p99.
    simulate_requests: Requests of each simulated run; 4,000 unless given.
    simulate_seed: Seed of all that is drawn in them; 42 unless given.
    spare: Replicas that stand by, beside those that the traffic needs.
    sure: How sure the limits are to hold: at 90% they hold at the end of the intervals that 90 % of measurements stay below.
    think: Time a user takes between an answer and the next request; none unless given.
    users: Users, instead of a rate: each asks again some time after the last token of an answer.
    model: Model: a catalogue name, a Hugging Face id, or the path of a config.json, of a folder holding one, or of a model .toml.
    on: Machine: a system, a chip, so many chips such as 8xh200, or the path of a chip or system .toml; with the price of a chip and hour in dollars behind an @ where the catalogue's is not meant, such as 8xh100@2.10.
    chips: Use this many chips of the machine instead of all.
    link: Join its chips by this link instead of their own: a rate one way out of each chip such as 25GB/s or 200Gb/s, a kind such as pcie4, pcie4 x8, 10GbE, nvlink (the bridge for two cards), a kind and its rate such as nvlink4:450GB/s, or ideal.
    quantization: Weight formats to choose from: auto is the checkpoint's.
    compute_dtype: Arithmetic to compute in: bf16, fp8, fp4, int8 and others.
    counting: What is counted; lecture: no attention arithmetic, every weight read in every step.
    overlap: max, sum, kv+max (scaling book), or a share from 0 (none) to 1 (perfect).
    price: Price of a chip and hour, such as 2.10/h.
    basis: Whose price.
    engine: Engines to choose from.
    kv_cache_dtype: Cache formats to choose from: auto is the model's, or the engine's with narrow weights.
    chunks: Most tokens in a pass, to choose from; the engine's own when empty.
    drafts: Drafts for each step to choose from; other than 0 only with an acceptance.
    acceptance: Chance that a draft is accepted when all before it were.
    aggregated: Whether prompts may have chips of their own; not with --aggregated.
    scenario: A named workload: what it says holds unless given here.
    isl: Tokens of a prompt, mean; 1,000 unless given.
    osl: Tokens of an answer, mean; 1,000 unless given.
    prefix_hit: Share of a prompt found in the prefix cache.
    rate: Requests per second; as much as the chips serve when absent.
    ttft: Time to first token, at most: its mean as 1s, a percentile as p90=1s.
    tpot: Time per output token, at most: its mean as 30ms, a percentile as p99=50ms.
    e2e: Time of a whole request, at most: its mean or a percentile.
    speed: Output tokens per second of one user, at least.
    throughput: Output tokens per second of all, at least.
    no_whole_hosts: Whole hosts are paid for, as far as the chips on offer go; not with --no-whole-hosts, which counts single chips.
    budget: Dollars per hour, at most.
    power: Power at most: of chips with their share of host and cooling where that is known, else their design power.
    objective: What is best.
    top: Deployments to show.
    isl_dist: Lengths of prompts, such as lognormal:mean=4k,cv=0.8, uniform:1k..4k or exponential:mean=1k.
    osl_dist: Lengths of answers, the same.
    peak: Traffic to plan for over the mean, which rate_per_s is.
    trace: What a trace says; lengths, rate and peak given elsewhere win over it.
    chips_per_host: Chips of one host, which are paid together; the machine's unless given.
    replay: A trace in Mooncake's format to replay in load tests.
    prefill_on: Machines that may compute prompts for those of the setting, with commas between them.
    degrees: Degrees of parallelism to try.
    """

WhatifBoards = TypedDict(
    "WhatifBoards",
    {
        "chip_w": float,
        "joules_per_token": float,
        "measured": bool,
    },
)

WhatifRange = TypedDict(
    "WhatifRange",
    {
        "high": float,
        "low": float,
        "value": float,
    },
)

WhatifPartGrade = TypedDict(
    "WhatifPartGrade",
    {
        "grade": Any,
        "part": str,
        "says": Any,
    },
)

WhatifCarried = TypedDict(
    "WhatifCarried",
    {
        "from": NotRequired[str | None],
        "step": str,
        "what": str,
    },
)

WhatifFactors = TypedDict(
    "WhatifFactors",
    {
        "throughput": float,
        "tpot": float,
        "ttft": float,
    },
)

WhatifEvidence = TypedDict(
    "WhatifEvidence",
    {
        "chip": str,
        "engine": str,
        "grade": Any,
        "model": str,
        "off": NotRequired[float | None],
        "parts": list[WhatifPartGrade],
        "rows": int,
        "says": Any,
        "steps": list[WhatifCarried],
        "within": WhatifFactors,
    },
)

WhatifCommand = TypedDict(
    "WhatifCommand",
    {
        "flags": str,
        "line": str,
        "role": str,
    },
)

WhatifFile = TypedDict(
    "WhatifFile",
    {
        "name": str,
        "text": str,
    },
)

WhatifHandover = TypedDict(
    "WhatifHandover",
    {
        "commands": list[WhatifCommand],
        "files": list[WhatifFile],
        "notes": list[str],
    },
)

WhatifMeanTraffic = TypedDict(
    "WhatifMeanTraffic",
    {
        "chips": int,
        "domains": int,
        "peak_rate_per_s": float,
        "power_kw": float,
        "rate_per_s": float,
        "replicas": int,
        "usd_per_hour": float,
        "usd_per_mtok_always_on": float,
    },
)

WhatifOffloadCard = TypedDict(
    "WhatifOffloadCard",
    {
        "bytes_per_prompt": float,
        "hit": float,
        "load_ms": float,
        "tier": str,
    },
)

WhatifTimes = TypedDict(
    "WhatifTimes",
    {
        "limit_ms": NotRequired[float | None],
        "mean_ms": float,
        "metric": Any,
        "p50_ms": float,
        "p90_ms": float,
        "p99_ms": float,
        "percentile": NotRequired[float | None],
        "percentile_ms": NotRequired[float | None],
    },
)

WhatifPercentiles = TypedDict(
    "WhatifPercentiles",
    {
        "goodput": NotRequired[float | None],
        "queue_grows": bool,
        "requests": int,
        "seed": int,
        "times": list[WhatifTimes],
    },
)

WhatifPoolPlan = TypedDict(
    "WhatifPoolPlan",
    {
        "chips": int,
        "chunk": float,
        "decode_instances": int,
        "instances": int,
        "layout": str,
        "system": str,
    },
)

WhatifSpareCard = TypedDict(
    "WhatifSpareCard",
    {
        "available": float,
        "available_without": float,
        "by_target": bool,
        "needed": int,
        "replicas": int,
        "up": float,
    },
)

WhatifPiece = TypedDict(
    "WhatifPiece",
    {
        "ms": float,
        "share": float,
        "what": Any,
    },
)

WhatifBreakdown = TypedDict(
    "WhatifBreakdown",
    {
        "decode_ms": float,
        "ideal_ms": float,
        "limits": list[WhatifPiece],
        "losses": list[WhatifPiece],
        "mixed_ms": float,
        "of_limit": float,
        "parts": list[WhatifPiece],
        "step_ms": float,
    },
)

WhatifSure = TypedDict(
    "WhatifSure",
    {
        "e2e_ms": float,
        "share": float,
        "throughput_tok_s": float,
        "tpot_ms": float,
        "ttft_ms": float,
        "usd_per_mtok": float,
    },
)

WhatifPlan = TypedDict(
    "WhatifPlan",
    {
        "boards": NotRequired[WhatifBoards | None],
        "bound_by": str,
        "busy": float,
        "chips": int,
        "chips_per_replica": int,
        "chunk": float,
        "concurrency": float,
        "concurrency_per_group": float,
        "deployment": Any,
        "domains": int,
        "drafts": float,
        "e2e_ms": WhatifRange,
        "engine": str,
        "evidence": NotRequired[WhatifEvidence | None],
        "handover": NotRequired[WhatifHandover | None],
        "headroom": float,
        "index": int,
        "joules_per_token": float,
        "kv": str,
        "launch": list[str],
        "layout": str,
        "mean_traffic": NotRequired[WhatifMeanTraffic | None],
        "offload": NotRequired[WhatifOffloadCard | None],
        "percentiles": NotRequired[WhatifPercentiles | None],
        "power_kw": float,
        "prefill": NotRequired[WhatifPoolPlan | None],
        "pretended": NotRequired[Any],
        "price_kind": str,
        "replicas": int,
        "sequences": float,
        "spare": NotRequired[WhatifSpareCard | None],
        "step": NotRequired[WhatifBreakdown | None],
        "sure": NotRequired[WhatifSure | None],
        "system": str,
        "throughput_tok_s": float,
        "tok_s_per_chip": WhatifRange,
        "tok_s_per_user": WhatifRange,
        "tpot_ms": WhatifRange,
        "ttft_ms": WhatifRange,
        "usd_per_hour": float,
        "usd_per_mtok": WhatifRange,
        "weights": str,
        "why": Any,
    },
)

WhatifChanged = TypedDict(
    "WhatifChanged",
    {
        "from": str,
        "to": str,
        "what": str,
    },
)

WhatifDifference = TypedDict(
    "WhatifDifference",
    {
        "after": NotRequired[float | None],
        "after_change": NotRequired[float | None],
        "before": NotRequired[float | None],
        "kept": NotRequired[float | None],
        "kept_change": NotRequired[float | None],
        "measure": Any,
    },
)

WhatifKept = TypedDict(
    "WhatifKept",
    {
        "broken": list[Any],
        "holds": Any,
        "plan": NotRequired[WhatifPlan | None],
    },
)

WhatifRelaxation = TypedDict(
    "WhatifRelaxation",
    {
        "asked": Any,
        "by": Any,
        "factor": float,
        "limit": str,
        "needed": Any,
    },
)

WhatifData = TypedDict(
    "WhatifData",
    {
        "after": NotRequired[WhatifPlan | None],
        "assumptions": list[Any],
        "before": NotRequired[WhatifPlan | None],
        "changes": list[WhatifChanged],
        "differences": list[WhatifDifference],
        "kept": WhatifKept,
        "limits": list[Any],
        "model": str,
        "objective": Any,
        "relaxations": list[WhatifRelaxation],
        "same_deployment": bool,
        "schema": NotRequired[int],
        "verdict": Any,
        "workload_after": Any,
        "workload_before": Any,
    },
)

def whatif(
    plan: str | PathLike[str] | Mapping[str, Any] | None = ...,
    *,
    set: str | Sequence[str] | None = ...,
    files: Mapping[str, str | Mapping[str, Any]] | None = ...,
    catalog: str | PathLike[str] | Catalog | None = ...,
) -> Answer[WhatifData]:
    """A plan with something changed: before, the same deployment kept, and the new best

    plan: The question before.
    set: Changes such as tpot=20ms, on=64xb200, isl=8k, price=3/h; none takes a limit away.
    """

ComparePartGrade = TypedDict(
    "ComparePartGrade",
    {
        "grade": Any,
        "part": str,
        "says": Any,
    },
)

CompareCarried = TypedDict(
    "CompareCarried",
    {
        "from": NotRequired[str | None],
        "step": str,
        "what": str,
    },
)

CompareFactors = TypedDict(
    "CompareFactors",
    {
        "throughput": float,
        "tpot": float,
        "ttft": float,
    },
)

CompareEvidence = TypedDict(
    "CompareEvidence",
    {
        "chip": str,
        "engine": str,
        "grade": Any,
        "model": str,
        "off": NotRequired[float | None],
        "parts": list[ComparePartGrade],
        "rows": int,
        "says": Any,
        "steps": list[CompareCarried],
        "within": CompareFactors,
    },
)

ComparePoint = TypedDict(
    "ComparePoint",
    {
        "chips_per_replica": int,
        "concurrency_per_group": float,
        "deployment": Any,
        "index": int,
        "tok_s_per_chip": float,
        "tok_s_per_user": float,
        "tpot_ms": float,
        "ttft_ms": float,
        "usd_per_mtok": float,
    },
)

CompareCurve = TypedDict(
    "CompareCurve",
    {
        "evidence": NotRequired[CompareEvidence | None],
        "model": str,
        "name": str,
        "none": NotRequired[Any],
        "points": list[ComparePoint],
        "spread": float,
        "system": str,
        "usd_per_chip_hour": float,
    },
)

CompareRange = TypedDict(
    "CompareRange",
    {
        "high": float,
        "low": float,
        "value": float,
    },
)

CompareNumber = TypedDict(
    "CompareNumber",
    {
        "measure": Any,
        "ratio": NotRequired[CompareRange | None],
        "value": CompareRange,
    },
)

CompareBoards = TypedDict(
    "CompareBoards",
    {
        "chip_w": float,
        "joules_per_token": float,
        "measured": bool,
    },
)

CompareCommand = TypedDict(
    "CompareCommand",
    {
        "flags": str,
        "line": str,
        "role": str,
    },
)

CompareFile = TypedDict(
    "CompareFile",
    {
        "name": str,
        "text": str,
    },
)

CompareHandover = TypedDict(
    "CompareHandover",
    {
        "commands": list[CompareCommand],
        "files": list[CompareFile],
        "notes": list[str],
    },
)

CompareMeanTraffic = TypedDict(
    "CompareMeanTraffic",
    {
        "chips": int,
        "domains": int,
        "peak_rate_per_s": float,
        "power_kw": float,
        "rate_per_s": float,
        "replicas": int,
        "usd_per_hour": float,
        "usd_per_mtok_always_on": float,
    },
)

CompareOffloadCard = TypedDict(
    "CompareOffloadCard",
    {
        "bytes_per_prompt": float,
        "hit": float,
        "load_ms": float,
        "tier": str,
    },
)

CompareTimes = TypedDict(
    "CompareTimes",
    {
        "limit_ms": NotRequired[float | None],
        "mean_ms": float,
        "metric": Any,
        "p50_ms": float,
        "p90_ms": float,
        "p99_ms": float,
        "percentile": NotRequired[float | None],
        "percentile_ms": NotRequired[float | None],
    },
)

ComparePercentiles = TypedDict(
    "ComparePercentiles",
    {
        "goodput": NotRequired[float | None],
        "queue_grows": bool,
        "requests": int,
        "seed": int,
        "times": list[CompareTimes],
    },
)

ComparePoolPlan = TypedDict(
    "ComparePoolPlan",
    {
        "chips": int,
        "chunk": float,
        "decode_instances": int,
        "instances": int,
        "layout": str,
        "system": str,
    },
)

CompareSpareCard = TypedDict(
    "CompareSpareCard",
    {
        "available": float,
        "available_without": float,
        "by_target": bool,
        "needed": int,
        "replicas": int,
        "up": float,
    },
)

ComparePiece = TypedDict(
    "ComparePiece",
    {
        "ms": float,
        "share": float,
        "what": Any,
    },
)

CompareBreakdown = TypedDict(
    "CompareBreakdown",
    {
        "decode_ms": float,
        "ideal_ms": float,
        "limits": list[ComparePiece],
        "losses": list[ComparePiece],
        "mixed_ms": float,
        "of_limit": float,
        "parts": list[ComparePiece],
        "step_ms": float,
    },
)

CompareSure = TypedDict(
    "CompareSure",
    {
        "e2e_ms": float,
        "share": float,
        "throughput_tok_s": float,
        "tpot_ms": float,
        "ttft_ms": float,
        "usd_per_mtok": float,
    },
)

ComparePlan = TypedDict(
    "ComparePlan",
    {
        "boards": NotRequired[CompareBoards | None],
        "bound_by": str,
        "busy": float,
        "chips": int,
        "chips_per_replica": int,
        "chunk": float,
        "concurrency": float,
        "concurrency_per_group": float,
        "deployment": Any,
        "domains": int,
        "drafts": float,
        "e2e_ms": CompareRange,
        "engine": str,
        "evidence": NotRequired[CompareEvidence | None],
        "handover": NotRequired[CompareHandover | None],
        "headroom": float,
        "index": int,
        "joules_per_token": float,
        "kv": str,
        "launch": list[str],
        "layout": str,
        "mean_traffic": NotRequired[CompareMeanTraffic | None],
        "offload": NotRequired[CompareOffloadCard | None],
        "percentiles": NotRequired[ComparePercentiles | None],
        "power_kw": float,
        "prefill": NotRequired[ComparePoolPlan | None],
        "pretended": NotRequired[Any],
        "price_kind": str,
        "replicas": int,
        "sequences": float,
        "spare": NotRequired[CompareSpareCard | None],
        "step": NotRequired[CompareBreakdown | None],
        "sure": NotRequired[CompareSure | None],
        "system": str,
        "throughput_tok_s": float,
        "tok_s_per_chip": CompareRange,
        "tok_s_per_user": CompareRange,
        "tpot_ms": CompareRange,
        "ttft_ms": CompareRange,
        "usd_per_hour": float,
        "usd_per_mtok": CompareRange,
        "weights": str,
        "why": Any,
    },
)

CompareRelaxation = TypedDict(
    "CompareRelaxation",
    {
        "asked": Any,
        "by": Any,
        "factor": float,
        "limit": str,
        "needed": Any,
    },
)

CompareColumn = TypedDict(
    "CompareColumn",
    {
        "curve": CompareCurve,
        "numbers": list[CompareNumber],
        "plan": NotRequired[ComparePlan | None],
        "power_basis": str,
        "price_basis": str,
        "relaxations": list[CompareRelaxation],
        "verdict": Any,
        "workload": Any,
    },
)

CompareMark = TypedDict(
    "CompareMark",
    {
        "label": Any,
        "x": float,
        "y": float,
    },
)

CompareSeries = TypedDict(
    "CompareSeries",
    {
        "name": Any,
        "points": list[list[Any]],
        "role": Any,
    },
)

CompareAxis = TypedDict(
    "CompareAxis",
    {
        "label": str,
        "scale": Any,
        "unit": Any,
    },
)

CompareFigure = TypedDict(
    "CompareFigure",
    {
        "marks": list[CompareMark],
        "series": list[CompareSeries],
        "subtitle": Any,
        "title": Any,
        "x": CompareAxis,
        "y": CompareAxis,
    },
)

CompareFlip = TypedDict(
    "CompareFlip",
    {
        "against": str,
        "cheapest_now": bool,
        "flips_at_usd_per_chip_hour": CompareRange,
        "name": str,
        "now_usd_per_chip_hour": float,
    },
)

CompareWin = TypedDict(
    "CompareWin",
    {
        "by": float,
        "decides": NotRequired[Any],
        "measure": Any,
        "name": str,
        "next": str,
        "too_close": bool,
        "value": float,
        "within": float,
    },
)

CompareData = TypedDict(
    "CompareData",
    {
        "assumptions": list[Any],
        "columns": list[CompareColumn],
        "figure_chip": CompareFigure,
        "figure_dollar": NotRequired[CompareFigure | None],
        "flips": list[CompareFlip],
        "limits": list[Any],
        "objective": Any,
        "over": str,
        "schema": NotRequired[int],
        "verdict": Any,
        "wins": list[CompareWin],
        "workload": Any,
    },
)

def compare(
    model: str | PathLike[str] | Mapping[str, Any] | None = ...,
    *,
    availability: float | str | None = ...,
    batch: int | str | None = ...,
    cache_headroom: float | str | None = ...,
    cost: float | str | None = ...,
    dcp: str | Sequence[int | str] | None = ...,
    failures_per_chip_year: float | str | None = ...,
    dp: int | str | None = ...,
    ep: int | str | None = ...,
    etp: int | str | None = ...,
    pp: int | str | None = ...,
    tp: int | str | None = ...,
    flags: str | None = ...,
    headroom: float | str | None = ...,
    offload_hit: float | str | None = ...,
    pretend: bool | None = ...,
    repair: float | str | None = ...,
    spare: int | str | None = ...,
    sure: float | str | None = ...,
    think: float | str | None = ...,
    users: float | str | None = ...,
    on: str | PathLike[str] | Mapping[str, Any] | None = ...,
    chips: int | str | None = ...,
    link: str | None = ...,
    quantization: str | Sequence[str] | None = ...,
    compute_dtype: str | None = ...,
    counting: Literal["strict", "lecture"] | None = ...,
    overlap: str | None = ...,
    price: float | str | None = ...,
    basis: Literal["owner-hyperscaler", "owner-neocloud", "rental", "on-demand", "spot", "owner", "contract", "reserved"] | None = ...,
    engines: str | Sequence[str] | None = ...,
    engine: str | Sequence[str] | None = ...,
    kv_cache_dtype: str | Sequence[str] | None = ...,
    chunks: str | Sequence[float | str] | None = ...,
    drafts: str | Sequence[float | str] | None = ...,
    acceptance: float | str | None = ...,
    aggregated: bool | None = ...,
    scenario: str | None = ...,
    isl: float | str | None = ...,
    osl: float | str | None = ...,
    prefix_hit: float | str | None = ...,
    rate: float | str | None = ...,
    ttft: float | str | None = ...,
    tpot: float | str | None = ...,
    e2e: float | str | None = ...,
    speed: float | str | None = ...,
    throughput: float | str | None = ...,
    no_whole_hosts: bool | None = ...,
    budget: float | str | None = ...,
    power: float | str | None = ...,
    objective: Literal["cost", "chips", "energy", "latency", "throughput", "goodput", "speed"] | None = ...,
    isl_dist: str | None = ...,
    osl_dist: str | None = ...,
    peak: float | str | None = ...,
    trace: str | PathLike[str] | Mapping[str, Any] | None = ...,
    prefill_on: str | PathLike[str] | Mapping[str, Any] | None = ...,
    degrees: Literal["powers", "any"] | None = ...,
    systems: str | Sequence[str | PathLike[str] | Mapping[str, Any]] | None = ...,
    models: str | Sequence[str | PathLike[str] | Mapping[str, Any]] | None = ...,
    files: Mapping[str, str | Mapping[str, Any]] | None = ...,
    catalog: str | PathLike[str] | Catalog | None = ...,
) -> Answer[CompareData]:
    """Systems, models or engines side by side for one workload: best plans, ratios, who wins, flip prices

    availability: Share of the time that all needed replicas are up, such as 99.9%: as many stand by as that takes.
    batch: Requests in flight in one attention group, instead of the best number.
    cache_headroom: Share of the memory for caches left free, at least.
    cost: Dollars per million output tokens, at most, such as 2: the best is then the fastest for a user, not the cheapest.
    dcp: Sizes of decode context parallel to try beside 1, with vLLM: chips that share the tokens of a cache instead of each keeping a copy.
    failures_per_chip_year: Failures of a chip in a year, where the catalogue's are not meant.
    dp: Data parallel.
    ep: Expert parallel.
    etp: Expert tensor parallel.
    pp: Pipeline parallel.
    tp: Tensor parallel.
    flags: A command line or flags of a server: its engine, formats, chunk, sequences, share of memory and degrees are taken over.
    headroom: Share of the load that is kept free: more replicas than the rate alone needs.
    offload_hit: Share of a prompt found in host memory, beyond what is found on the chips: a choice of the plan when given.
    pretend: Computes what the engine, the chip or the model's context do not allow, and says that it does not exist.
    repair: Time until a failed replica serves again.
    spare: Replicas that stand by, beside those that the traffic needs.
    sure: How sure the limits are to hold: at 90% they hold at the end of the intervals that 90 % of measurements stay below.
    think: Time a user takes between an answer and the next request; none unless given.
    users: Users, instead of a rate: each asks again some time after the last token of an answer.
    model: Model: a catalogue name, a Hugging Face id, or the path of a config.json, of a folder holding one, or of a model .toml.
    on: Machine: a system, a chip, so many chips such as 8xh200, or the path of a chip or system .toml; with the price of a chip and hour in dollars behind an @ where the catalogue's is not meant, such as 8xh100@2.10.
    chips: Use this many chips of the machine instead of all.
    link: Join its chips by this link instead of their own: a rate one way out of each chip such as 25GB/s or 200Gb/s, a kind such as pcie4, pcie4 x8, 10GbE, nvlink (the bridge for two cards), a kind and its rate such as nvlink4:450GB/s, or ideal.
    quantization: Weight formats to choose from: auto is the checkpoint's.
    compute_dtype: Arithmetic to compute in: bf16, fp8, fp4, int8 and others.
    counting: What is counted; lecture: no attention arithmetic, every weight read in every step.
    overlap: max, sum, kv+max (scaling book), or a share from 0 (none) to 1 (perfect).
    price: Price of a chip and hour, such as 2.10/h.
    basis: Whose price.
    engines: Engines.
    engine: Engines to choose from.
    kv_cache_dtype: Cache formats to choose from: auto is the model's, or the engine's with narrow weights.
    chunks: Most tokens in a pass, to choose from; the engine's own when empty.
    drafts: Drafts for each step to choose from; other than 0 only with an acceptance.
    acceptance: Chance that a draft is accepted when all before it were.
    aggregated: Whether prompts may have chips of their own; not with --aggregated.
    scenario: A named workload: what it says holds unless given here.
    isl: Tokens of a prompt, mean; 1,000 unless given.
    osl: Tokens of an answer, mean; 1,000 unless given.
    prefix_hit: Share of a prompt found in the prefix cache.
    rate: Requests per second; as much as the chips serve when absent.
    ttft: Mean time to first token, at most.
    tpot: Mean time per output token, at most.
    e2e: Mean time of a whole request, at most.
    speed: Output tokens per second of one user, at least.
    throughput: Output tokens per second of all, at least.
    no_whole_hosts: Whole hosts are paid for, as far as the chips on offer go; not with --no-whole-hosts, which counts single chips.
    budget: Dollars per hour, at most.
    power: Power at most: of chips with their share of host and cooling where that is known, else their design power.
    objective: What is best.
    isl_dist: Lengths of prompts, such as lognormal:mean=4k,cv=0.8, uniform:1k..4k or exponential:mean=1k.
    osl_dist: Lengths of answers, the same.
    peak: Traffic to plan for over the mean, which rate_per_s is.
    trace: What a trace says; lengths, rate and peak given elsewhere win over it.
    prefill_on: Machines that may compute prompts for those of the setting, with commas between them.
    degrees: Degrees of parallelism to try.
    systems: Machines.
    models: Models.
    """

FrontierPartGrade = TypedDict(
    "FrontierPartGrade",
    {
        "grade": Any,
        "part": str,
        "says": Any,
    },
)

FrontierCarried = TypedDict(
    "FrontierCarried",
    {
        "from": NotRequired[str | None],
        "step": str,
        "what": str,
    },
)

FrontierFactors = TypedDict(
    "FrontierFactors",
    {
        "throughput": float,
        "tpot": float,
        "ttft": float,
    },
)

FrontierEvidence = TypedDict(
    "FrontierEvidence",
    {
        "chip": str,
        "engine": str,
        "grade": Any,
        "model": str,
        "off": NotRequired[float | None],
        "parts": list[FrontierPartGrade],
        "rows": int,
        "says": Any,
        "steps": list[FrontierCarried],
        "within": FrontierFactors,
    },
)

FrontierPoint = TypedDict(
    "FrontierPoint",
    {
        "chips_per_replica": int,
        "concurrency_per_group": float,
        "deployment": Any,
        "index": int,
        "tok_s_per_chip": float,
        "tok_s_per_user": float,
        "tpot_ms": float,
        "ttft_ms": float,
        "usd_per_mtok": float,
    },
)

FrontierCurve = TypedDict(
    "FrontierCurve",
    {
        "evidence": NotRequired[FrontierEvidence | None],
        "model": str,
        "name": str,
        "none": NotRequired[Any],
        "points": list[FrontierPoint],
        "spread": float,
        "system": str,
        "usd_per_chip_hour": float,
    },
)

FrontierMark = TypedDict(
    "FrontierMark",
    {
        "label": Any,
        "x": float,
        "y": float,
    },
)

FrontierSeries = TypedDict(
    "FrontierSeries",
    {
        "name": Any,
        "points": list[list[Any]],
        "role": Any,
    },
)

FrontierAxis = TypedDict(
    "FrontierAxis",
    {
        "label": str,
        "scale": Any,
        "unit": Any,
    },
)

FrontierFigure = TypedDict(
    "FrontierFigure",
    {
        "marks": list[FrontierMark],
        "series": list[FrontierSeries],
        "subtitle": Any,
        "title": Any,
        "x": FrontierAxis,
        "y": FrontierAxis,
    },
)

FrontierLead = TypedDict(
    "FrontierLead",
    {
        "ahead": NotRequired[list[Any] | None],
        "decides": NotRequired[Any],
        "from_tok_s_per_user": float,
        "name": str,
        "next": NotRequired[str | None],
        "to_tok_s_per_user": float,
        "too_close": bool,
    },
)

FrontierData = TypedDict(
    "FrontierData",
    {
        "assumptions": list[Any],
        "curves": list[FrontierCurve],
        "figure_chip": FrontierFigure,
        "figure_dollar": NotRequired[FrontierFigure | None],
        "leads_per_chip": list[FrontierLead],
        "leads_per_dollar": list[FrontierLead],
        "limits": list[Any],
        "over": str,
        "schema": NotRequired[int],
        "workload": Any,
    },
)

def frontier(
    model: str | PathLike[str] | Mapping[str, Any] | None = ...,
    *,
    availability: float | str | None = ...,
    batch: int | str | None = ...,
    cache_headroom: float | str | None = ...,
    cost: float | str | None = ...,
    dcp: str | Sequence[int | str] | None = ...,
    failures_per_chip_year: float | str | None = ...,
    dp: int | str | None = ...,
    ep: int | str | None = ...,
    etp: int | str | None = ...,
    pp: int | str | None = ...,
    tp: int | str | None = ...,
    flags: str | None = ...,
    headroom: float | str | None = ...,
    offload_hit: float | str | None = ...,
    pretend: bool | None = ...,
    repair: float | str | None = ...,
    spare: int | str | None = ...,
    sure: float | str | None = ...,
    think: float | str | None = ...,
    users: float | str | None = ...,
    on: str | PathLike[str] | Mapping[str, Any] | None = ...,
    chips: int | str | None = ...,
    link: str | None = ...,
    quantization: str | Sequence[str] | None = ...,
    compute_dtype: str | None = ...,
    counting: Literal["strict", "lecture"] | None = ...,
    overlap: str | None = ...,
    price: float | str | None = ...,
    basis: Literal["owner-hyperscaler", "owner-neocloud", "rental", "on-demand", "spot", "owner", "contract", "reserved"] | None = ...,
    engines: str | Sequence[str] | None = ...,
    engine: str | Sequence[str] | None = ...,
    kv_cache_dtype: str | Sequence[str] | None = ...,
    chunks: str | Sequence[float | str] | None = ...,
    drafts: str | Sequence[float | str] | None = ...,
    acceptance: float | str | None = ...,
    aggregated: bool | None = ...,
    scenario: str | None = ...,
    isl: float | str | None = ...,
    osl: float | str | None = ...,
    prefix_hit: float | str | None = ...,
    rate: float | str | None = ...,
    ttft: float | str | None = ...,
    tpot: float | str | None = ...,
    e2e: float | str | None = ...,
    speed: float | str | None = ...,
    throughput: float | str | None = ...,
    no_whole_hosts: bool | None = ...,
    budget: float | str | None = ...,
    power: float | str | None = ...,
    objective: Literal["cost", "chips", "energy", "latency", "throughput", "goodput", "speed"] | None = ...,
    isl_dist: str | None = ...,
    osl_dist: str | None = ...,
    peak: float | str | None = ...,
    trace: str | PathLike[str] | Mapping[str, Any] | None = ...,
    prefill_on: str | PathLike[str] | Mapping[str, Any] | None = ...,
    degrees: Literal["powers", "any"] | None = ...,
    systems: str | Sequence[str | PathLike[str] | Mapping[str, Any]] | None = ...,
    models: str | Sequence[str | PathLike[str] | Mapping[str, Any]] | None = ...,
    files: Mapping[str, str | Mapping[str, Any]] | None = ...,
    catalog: str | PathLike[str] | Catalog | None = ...,
) -> Answer[FrontierData]:
    """What users and chips can have at once: frontiers of systems, models or engines, one over the other

    availability: Share of the time that all needed replicas are up, such as 99.9%: as many stand by as that takes.
    batch: Requests in flight in one attention group, instead of the best number.
    cache_headroom: Share of the memory for caches left free, at least.
    cost: Dollars per million output tokens, at most, such as 2: the best is then the fastest for a user, not the cheapest.
    dcp: Sizes of decode context parallel to try beside 1, with vLLM: chips that share the tokens of a cache instead of each keeping a copy.
    failures_per_chip_year: Failures of a chip in a year, where the catalogue's are not meant.
    dp: Data parallel.
    ep: Expert parallel.
    etp: Expert tensor parallel.
    pp: Pipeline parallel.
    tp: Tensor parallel.
    flags: A command line or flags of a server: its engine, formats, chunk, sequences, share of memory and degrees are taken over.
    headroom: Share of the load that is kept free: more replicas than the rate alone needs.
    offload_hit: Share of a prompt found in host memory, beyond what is found on the chips: a choice of the plan when given.
    pretend: Computes what the engine, the chip or the model's context do not allow, and says that it does not exist.
    repair: Time until a failed replica serves again.
    spare: Replicas that stand by, beside those that the traffic needs.
    sure: How sure the limits are to hold: at 90% they hold at the end of the intervals that 90 % of measurements stay below.
    think: Time a user takes between an answer and the next request; none unless given.
    users: Users, instead of a rate: each asks again some time after the last token of an answer.
    model: Model: a catalogue name, a Hugging Face id, or the path of a config.json, of a folder holding one, or of a model .toml.
    on: Machine: a system, a chip, so many chips such as 8xh200, or the path of a chip or system .toml; with the price of a chip and hour in dollars behind an @ where the catalogue's is not meant, such as 8xh100@2.10.
    chips: Use this many chips of the machine instead of all.
    link: Join its chips by this link instead of their own: a rate one way out of each chip such as 25GB/s or 200Gb/s, a kind such as pcie4, pcie4 x8, 10GbE, nvlink (the bridge for two cards), a kind and its rate such as nvlink4:450GB/s, or ideal.
    quantization: Weight formats to choose from: auto is the checkpoint's.
    compute_dtype: Arithmetic to compute in: bf16, fp8, fp4, int8 and others.
    counting: What is counted; lecture: no attention arithmetic, every weight read in every step.
    overlap: max, sum, kv+max (scaling book), or a share from 0 (none) to 1 (perfect).
    price: Price of a chip and hour, such as 2.10/h.
    basis: Whose price.
    engines: Engines.
    engine: Engines to choose from.
    kv_cache_dtype: Cache formats to choose from: auto is the model's, or the engine's with narrow weights.
    chunks: Most tokens in a pass, to choose from; the engine's own when empty.
    drafts: Drafts for each step to choose from; other than 0 only with an acceptance.
    acceptance: Chance that a draft is accepted when all before it were.
    aggregated: Whether prompts may have chips of their own; not with --aggregated.
    scenario: A named workload: what it says holds unless given here.
    isl: Tokens of a prompt, mean; 1,000 unless given.
    osl: Tokens of an answer, mean; 1,000 unless given.
    prefix_hit: Share of a prompt found in the prefix cache.
    rate: Requests per second; as much as the chips serve when absent.
    ttft: Mean time to first token, at most.
    tpot: Mean time per output token, at most.
    e2e: Mean time of a whole request, at most.
    speed: Output tokens per second of one user, at least.
    throughput: Output tokens per second of all, at least.
    no_whole_hosts: Whole hosts are paid for, as far as the chips on offer go; not with --no-whole-hosts, which counts single chips.
    budget: Dollars per hour, at most.
    power: Power at most: of chips with their share of host and cooling where that is known, else their design power.
    objective: What is best.
    isl_dist: Lengths of prompts, such as lognormal:mean=4k,cv=0.8, uniform:1k..4k or exponential:mean=1k.
    osl_dist: Lengths of answers, the same.
    peak: Traffic to plan for over the mean, which rate_per_s is.
    trace: What a trace says; lengths, rate and peak given elsewhere win over it.
    prefill_on: Machines that may compute prompts for those of the setting, with commas between them.
    degrees: Degrees of parallelism to try.
    systems: Machines.
    models: Models.
    """

HardwarePartGrade = TypedDict(
    "HardwarePartGrade",
    {
        "grade": Any,
        "part": str,
        "says": Any,
    },
)

HardwareCarried = TypedDict(
    "HardwareCarried",
    {
        "from": NotRequired[str | None],
        "step": str,
        "what": str,
    },
)

HardwareFactors = TypedDict(
    "HardwareFactors",
    {
        "throughput": float,
        "tpot": float,
        "ttft": float,
    },
)

HardwareEvidence = TypedDict(
    "HardwareEvidence",
    {
        "chip": str,
        "engine": str,
        "grade": Any,
        "model": str,
        "off": NotRequired[float | None],
        "parts": list[HardwarePartGrade],
        "rows": int,
        "says": Any,
        "steps": list[HardwareCarried],
        "within": HardwareFactors,
    },
)

HardwarePoint = TypedDict(
    "HardwarePoint",
    {
        "chips_per_replica": int,
        "concurrency_per_group": float,
        "deployment": Any,
        "index": int,
        "tok_s_per_chip": float,
        "tok_s_per_user": float,
        "tpot_ms": float,
        "ttft_ms": float,
        "usd_per_mtok": float,
    },
)

HardwareCurve = TypedDict(
    "HardwareCurve",
    {
        "evidence": NotRequired[HardwareEvidence | None],
        "model": str,
        "name": str,
        "none": NotRequired[Any],
        "points": list[HardwarePoint],
        "spread": float,
        "system": str,
        "usd_per_chip_hour": float,
    },
)

HardwareMark = TypedDict(
    "HardwareMark",
    {
        "label": Any,
        "x": float,
        "y": float,
    },
)

HardwareSeries = TypedDict(
    "HardwareSeries",
    {
        "name": Any,
        "points": list[list[Any]],
        "role": Any,
    },
)

HardwareAxis = TypedDict(
    "HardwareAxis",
    {
        "label": str,
        "scale": Any,
        "unit": Any,
    },
)

HardwareFigure = TypedDict(
    "HardwareFigure",
    {
        "marks": list[HardwareMark],
        "series": list[HardwareSeries],
        "subtitle": Any,
        "title": Any,
        "x": HardwareAxis,
        "y": HardwareAxis,
    },
)

HardwareFlip = TypedDict(
    "HardwareFlip",
    {
        "above": NotRequired[str | None],
        "at": float,
        "axis": str,
        "below": NotRequired[str | None],
        "between": list[str],
        "close_from": NotRequired[float | None],
        "close_to": NotRequired[float | None],
        "now": NotRequired[float | None],
        "until": NotRequired[float | None],
    },
)

HardwareOut = TypedDict(
    "HardwareOut",
    {
        "name": str,
        "why": Any,
    },
)

HardwareRange = TypedDict(
    "HardwareRange",
    {
        "high": float,
        "low": float,
        "value": float,
    },
)

HardwareBoards = TypedDict(
    "HardwareBoards",
    {
        "chip_w": float,
        "joules_per_token": float,
        "measured": bool,
    },
)

HardwareCommand = TypedDict(
    "HardwareCommand",
    {
        "flags": str,
        "line": str,
        "role": str,
    },
)

HardwareFile = TypedDict(
    "HardwareFile",
    {
        "name": str,
        "text": str,
    },
)

HardwareHandover = TypedDict(
    "HardwareHandover",
    {
        "commands": list[HardwareCommand],
        "files": list[HardwareFile],
        "notes": list[str],
    },
)

HardwareMeanTraffic = TypedDict(
    "HardwareMeanTraffic",
    {
        "chips": int,
        "domains": int,
        "peak_rate_per_s": float,
        "power_kw": float,
        "rate_per_s": float,
        "replicas": int,
        "usd_per_hour": float,
        "usd_per_mtok_always_on": float,
    },
)

HardwareOffloadCard = TypedDict(
    "HardwareOffloadCard",
    {
        "bytes_per_prompt": float,
        "hit": float,
        "load_ms": float,
        "tier": str,
    },
)

HardwareTimes = TypedDict(
    "HardwareTimes",
    {
        "limit_ms": NotRequired[float | None],
        "mean_ms": float,
        "metric": Any,
        "p50_ms": float,
        "p90_ms": float,
        "p99_ms": float,
        "percentile": NotRequired[float | None],
        "percentile_ms": NotRequired[float | None],
    },
)

HardwarePercentiles = TypedDict(
    "HardwarePercentiles",
    {
        "goodput": NotRequired[float | None],
        "queue_grows": bool,
        "requests": int,
        "seed": int,
        "times": list[HardwareTimes],
    },
)

HardwarePoolPlan = TypedDict(
    "HardwarePoolPlan",
    {
        "chips": int,
        "chunk": float,
        "decode_instances": int,
        "instances": int,
        "layout": str,
        "system": str,
    },
)

HardwareSpareCard = TypedDict(
    "HardwareSpareCard",
    {
        "available": float,
        "available_without": float,
        "by_target": bool,
        "needed": int,
        "replicas": int,
        "up": float,
    },
)

HardwarePiece = TypedDict(
    "HardwarePiece",
    {
        "ms": float,
        "share": float,
        "what": Any,
    },
)

HardwareBreakdown = TypedDict(
    "HardwareBreakdown",
    {
        "decode_ms": float,
        "ideal_ms": float,
        "limits": list[HardwarePiece],
        "losses": list[HardwarePiece],
        "mixed_ms": float,
        "of_limit": float,
        "parts": list[HardwarePiece],
        "step_ms": float,
    },
)

HardwareSure = TypedDict(
    "HardwareSure",
    {
        "e2e_ms": float,
        "share": float,
        "throughput_tok_s": float,
        "tpot_ms": float,
        "ttft_ms": float,
        "usd_per_mtok": float,
    },
)

HardwarePlan = TypedDict(
    "HardwarePlan",
    {
        "boards": NotRequired[HardwareBoards | None],
        "bound_by": str,
        "busy": float,
        "chips": int,
        "chips_per_replica": int,
        "chunk": float,
        "concurrency": float,
        "concurrency_per_group": float,
        "deployment": Any,
        "domains": int,
        "drafts": float,
        "e2e_ms": HardwareRange,
        "engine": str,
        "evidence": NotRequired[HardwareEvidence | None],
        "handover": NotRequired[HardwareHandover | None],
        "headroom": float,
        "index": int,
        "joules_per_token": float,
        "kv": str,
        "launch": list[str],
        "layout": str,
        "mean_traffic": NotRequired[HardwareMeanTraffic | None],
        "offload": NotRequired[HardwareOffloadCard | None],
        "percentiles": NotRequired[HardwarePercentiles | None],
        "power_kw": float,
        "prefill": NotRequired[HardwarePoolPlan | None],
        "pretended": NotRequired[Any],
        "price_kind": str,
        "replicas": int,
        "sequences": float,
        "spare": NotRequired[HardwareSpareCard | None],
        "step": NotRequired[HardwareBreakdown | None],
        "sure": NotRequired[HardwareSure | None],
        "system": str,
        "throughput_tok_s": float,
        "tok_s_per_chip": HardwareRange,
        "tok_s_per_user": HardwareRange,
        "tpot_ms": HardwareRange,
        "ttft_ms": HardwareRange,
        "usd_per_hour": float,
        "usd_per_mtok": HardwareRange,
        "weights": str,
        "why": Any,
    },
)

HardwareRow = TypedDict(
    "HardwareRow",
    {
        "behind": HardwareRange,
        "decides": NotRequired[Any],
        "flips_at_usd_per_chip_hour": NotRequired[float | None],
        "name": str,
        "plan": HardwarePlan,
        "power_basis": str,
        "price_basis": str,
        "too_close": bool,
        "usd_per_chip_hour": float,
    },
)

HardwareData = TypedDict(
    "HardwareData",
    {
        "assumptions": list[Any],
        "chips": int,
        "curves": list[HardwareCurve],
        "figure": HardwareFigure,
        "flips": list[HardwareFlip],
        "limits": list[Any],
        "model": str,
        "objective": Any,
        "out": list[HardwareOut],
        "rows": list[HardwareRow],
        "schema": NotRequired[int],
        "verdict": Any,
        "workload": NotRequired[Any],
    },
)

def hardware(
    model: str | PathLike[str] | Mapping[str, Any] | None = ...,
    *,
    availability: float | str | None = ...,
    batch: int | str | None = ...,
    cache_headroom: float | str | None = ...,
    cost: float | str | None = ...,
    dcp: str | Sequence[int | str] | None = ...,
    failures_per_chip_year: float | str | None = ...,
    dp: int | str | None = ...,
    ep: int | str | None = ...,
    etp: int | str | None = ...,
    pp: int | str | None = ...,
    tp: int | str | None = ...,
    flags: str | None = ...,
    headroom: float | str | None = ...,
    offload_hit: float | str | None = ...,
    pretend: bool | None = ...,
    repair: float | str | None = ...,
    spare: int | str | None = ...,
    sure: float | str | None = ...,
    think: float | str | None = ...,
    users: float | str | None = ...,
    chips: int | str | None = ...,
    link: str | None = ...,
    quantization: str | Sequence[str] | None = ...,
    compute_dtype: str | None = ...,
    counting: Literal["strict", "lecture"] | None = ...,
    overlap: str | None = ...,
    price: float | str | None = ...,
    basis: Literal["owner-hyperscaler", "owner-neocloud", "rental", "on-demand", "spot", "owner", "contract", "reserved"] | None = ...,
    engine: str | Sequence[str] | None = ...,
    kv_cache_dtype: str | Sequence[str] | None = ...,
    chunks: str | Sequence[float | str] | None = ...,
    drafts: str | Sequence[float | str] | None = ...,
    acceptance: float | str | None = ...,
    aggregated: bool | None = ...,
    scenario: str | None = ...,
    isl: float | str | None = ...,
    osl: float | str | None = ...,
    prefix_hit: float | str | None = ...,
    rate: float | str | None = ...,
    ttft: float | str | None = ...,
    tpot: float | str | None = ...,
    e2e: float | str | None = ...,
    speed: float | str | None = ...,
    throughput: float | str | None = ...,
    no_whole_hosts: bool | None = ...,
    budget: float | str | None = ...,
    power: float | str | None = ...,
    objective: Literal["cost", "chips", "energy", "latency", "throughput", "goodput", "speed"] | None = ...,
    isl_dist: str | None = ...,
    osl_dist: str | None = ...,
    peak: float | str | None = ...,
    trace: str | PathLike[str] | Mapping[str, Any] | None = ...,
    prefill_on: str | PathLike[str] | Mapping[str, Any] | None = ...,
    degrees: Literal["powers", "any"] | None = ...,
    among: str | Sequence[str | PathLike[str] | Mapping[str, Any]] | None = ...,
    no_flips: bool | None = ...,
    files: Mapping[str, str | Mapping[str, Any]] | None = ...,
    catalog: str | PathLike[str] | Catalog | None = ...,
) -> Answer[HardwareData]:
    """The best hardware of the catalogue for a workload, and where the answer changes

    availability: Share of the time that all needed replicas are up, such as 99.9%: as many stand by as that takes.
    batch: Requests in flight in one attention group, instead of the best number.
    cache_headroom: Share of the memory for caches left free, at least.
    cost: Dollars per million output tokens, at most, such as 2: the best is then the fastest for a user, not the cheapest.
    dcp: Sizes of decode context parallel to try beside 1, with vLLM: chips that share the tokens of a cache instead of each keeping a copy.
    failures_per_chip_year: Failures of a chip in a year, where the catalogue's are not meant.
    dp: Data parallel.
    ep: Expert parallel.
    etp: Expert tensor parallel.
    pp: Pipeline parallel.
    tp: Tensor parallel.
    flags: A command line or flags of a server: its engine, formats, chunk, sequences, share of memory and degrees are taken over.
    headroom: Share of the load that is kept free: more replicas than the rate alone needs.
    offload_hit: Share of a prompt found in host memory, beyond what is found on the chips: a choice of the plan when given.
    pretend: Computes what the engine, the chip or the model's context do not allow, and says that it does not exist.
    repair: Time until a failed replica serves again.
    spare: Replicas that stand by, beside those that the traffic needs.
    sure: How sure the limits are to hold: at 90% they hold at the end of the intervals that 90 % of measurements stay below.
    think: Time a user takes between an answer and the next request; none unless given.
    users: Users, instead of a rate: each asks again some time after the last token of an answer.
    model: Model: a catalogue name, a Hugging Face id, or the path of a config.json, of a folder holding one, or of a model .toml.
    chips: Use this many chips of the machine instead of all.
    link: Join its chips by this link instead of their own: a rate one way out of each chip such as 25GB/s or 200Gb/s, a kind such as pcie4, pcie4 x8, 10GbE, nvlink (the bridge for two cards), a kind and its rate such as nvlink4:450GB/s, or ideal.
    quantization: Weight formats to choose from: auto is the checkpoint's.
    compute_dtype: Arithmetic to compute in: bf16, fp8, fp4, int8 and others.
    counting: What is counted; lecture: no attention arithmetic, every weight read in every step.
    overlap: max, sum, kv+max (scaling book), or a share from 0 (none) to 1 (perfect).
    price: Price of a chip and hour, such as 2.10/h.
    basis: Whose price.
    engine: Engines to choose from.
    kv_cache_dtype: Cache formats to choose from: auto is the model's, or the engine's with narrow weights.
    chunks: Most tokens in a pass, to choose from; the engine's own when empty.
    drafts: Drafts for each step to choose from; other than 0 only with an acceptance.
    acceptance: Chance that a draft is accepted when all before it were.
    aggregated: Whether prompts may have chips of their own; not with --aggregated.
    scenario: A named workload: what it says holds unless given here.
    isl: Tokens of a prompt, mean; 1,000 unless given.
    osl: Tokens of an answer, mean; 1,000 unless given.
    prefix_hit: Share of a prompt found in the prefix cache.
    rate: Requests per second; as much as the chips serve when absent.
    ttft: Mean time to first token, at most.
    tpot: Mean time per output token, at most.
    e2e: Mean time of a whole request, at most.
    speed: Output tokens per second of one user, at least.
    throughput: Output tokens per second of all, at least.
    no_whole_hosts: Whole hosts are paid for, as far as the chips on offer go; not with --no-whole-hosts, which counts single chips.
    budget: Dollars per hour, at most.
    power: Power at most: of chips with their share of host and cooling where that is known, else their design power.
    objective: What is best.
    isl_dist: Lengths of prompts, such as lognormal:mean=4k,cv=0.8, uniform:1k..4k or exponential:mean=1k.
    osl_dist: Lengths of answers, the same.
    peak: Traffic to plan for over the mean, which rate_per_s is.
    trace: What a trace says; lengths, rate and peak given elsewhere win over it.
    prefill_on: Machines that may compute prompts for those of the setting, with commas between them.
    degrees: Degrees of parallelism to try.
    among: Chips or systems to choose from; all chips with a price when empty.
    no_flips: Whether to look for where the answer changes.
    """

OutlookCase = TypedDict(
    "OutlookCase",
    {
        "change": NotRequired[float | None],
        "deployment": NotRequired[Any],
        "kept": Any,
        "regret": NotRequired[float | None],
        "replicas": NotRequired[int | None],
        "value": Any,
    },
)

OutlookInput = TypedDict(
    "OutlookInput",
    {
        "high": OutlookCase,
        "low": OutlookCase,
        "name": Any,
    },
)

OutlookRelief = TypedDict(
    "OutlookRelief",
    {
        "gain": float,
        "limit": str,
    },
)

OutlookMost = TypedDict(
    "OutlookMost",
    {
        "deployment": Any,
        "reliefs": list[OutlookRelief],
        "requests_per_s": float,
        "times_now": NotRequired[float | None],
    },
)

OutlookBoards = TypedDict(
    "OutlookBoards",
    {
        "chip_w": float,
        "joules_per_token": float,
        "measured": bool,
    },
)

OutlookRange = TypedDict(
    "OutlookRange",
    {
        "high": float,
        "low": float,
        "value": float,
    },
)

OutlookPartGrade = TypedDict(
    "OutlookPartGrade",
    {
        "grade": Any,
        "part": str,
        "says": Any,
    },
)

OutlookCarried = TypedDict(
    "OutlookCarried",
    {
        "from": NotRequired[str | None],
        "step": str,
        "what": str,
    },
)

OutlookFactors = TypedDict(
    "OutlookFactors",
    {
        "throughput": float,
        "tpot": float,
        "ttft": float,
    },
)

OutlookEvidence = TypedDict(
    "OutlookEvidence",
    {
        "chip": str,
        "engine": str,
        "grade": Any,
        "model": str,
        "off": NotRequired[float | None],
        "parts": list[OutlookPartGrade],
        "rows": int,
        "says": Any,
        "steps": list[OutlookCarried],
        "within": OutlookFactors,
    },
)

OutlookCommand = TypedDict(
    "OutlookCommand",
    {
        "flags": str,
        "line": str,
        "role": str,
    },
)

OutlookFile = TypedDict(
    "OutlookFile",
    {
        "name": str,
        "text": str,
    },
)

OutlookHandover = TypedDict(
    "OutlookHandover",
    {
        "commands": list[OutlookCommand],
        "files": list[OutlookFile],
        "notes": list[str],
    },
)

OutlookMeanTraffic = TypedDict(
    "OutlookMeanTraffic",
    {
        "chips": int,
        "domains": int,
        "peak_rate_per_s": float,
        "power_kw": float,
        "rate_per_s": float,
        "replicas": int,
        "usd_per_hour": float,
        "usd_per_mtok_always_on": float,
    },
)

OutlookOffloadCard = TypedDict(
    "OutlookOffloadCard",
    {
        "bytes_per_prompt": float,
        "hit": float,
        "load_ms": float,
        "tier": str,
    },
)

OutlookTimes = TypedDict(
    "OutlookTimes",
    {
        "limit_ms": NotRequired[float | None],
        "mean_ms": float,
        "metric": Any,
        "p50_ms": float,
        "p90_ms": float,
        "p99_ms": float,
        "percentile": NotRequired[float | None],
        "percentile_ms": NotRequired[float | None],
    },
)

OutlookPercentiles = TypedDict(
    "OutlookPercentiles",
    {
        "goodput": NotRequired[float | None],
        "queue_grows": bool,
        "requests": int,
        "seed": int,
        "times": list[OutlookTimes],
    },
)

OutlookPoolPlan = TypedDict(
    "OutlookPoolPlan",
    {
        "chips": int,
        "chunk": float,
        "decode_instances": int,
        "instances": int,
        "layout": str,
        "system": str,
    },
)

OutlookSpareCard = TypedDict(
    "OutlookSpareCard",
    {
        "available": float,
        "available_without": float,
        "by_target": bool,
        "needed": int,
        "replicas": int,
        "up": float,
    },
)

OutlookPiece = TypedDict(
    "OutlookPiece",
    {
        "ms": float,
        "share": float,
        "what": Any,
    },
)

OutlookBreakdown = TypedDict(
    "OutlookBreakdown",
    {
        "decode_ms": float,
        "ideal_ms": float,
        "limits": list[OutlookPiece],
        "losses": list[OutlookPiece],
        "mixed_ms": float,
        "of_limit": float,
        "parts": list[OutlookPiece],
        "step_ms": float,
    },
)

OutlookSure = TypedDict(
    "OutlookSure",
    {
        "e2e_ms": float,
        "share": float,
        "throughput_tok_s": float,
        "tpot_ms": float,
        "ttft_ms": float,
        "usd_per_mtok": float,
    },
)

OutlookPlan = TypedDict(
    "OutlookPlan",
    {
        "boards": NotRequired[OutlookBoards | None],
        "bound_by": str,
        "busy": float,
        "chips": int,
        "chips_per_replica": int,
        "chunk": float,
        "concurrency": float,
        "concurrency_per_group": float,
        "deployment": Any,
        "domains": int,
        "drafts": float,
        "e2e_ms": OutlookRange,
        "engine": str,
        "evidence": NotRequired[OutlookEvidence | None],
        "handover": NotRequired[OutlookHandover | None],
        "headroom": float,
        "index": int,
        "joules_per_token": float,
        "kv": str,
        "launch": list[str],
        "layout": str,
        "mean_traffic": NotRequired[OutlookMeanTraffic | None],
        "offload": NotRequired[OutlookOffloadCard | None],
        "percentiles": NotRequired[OutlookPercentiles | None],
        "power_kw": float,
        "prefill": NotRequired[OutlookPoolPlan | None],
        "pretended": NotRequired[Any],
        "price_kind": str,
        "replicas": int,
        "sequences": float,
        "spare": NotRequired[OutlookSpareCard | None],
        "step": NotRequired[OutlookBreakdown | None],
        "sure": NotRequired[OutlookSure | None],
        "system": str,
        "throughput_tok_s": float,
        "tok_s_per_chip": OutlookRange,
        "tok_s_per_user": OutlookRange,
        "tpot_ms": OutlookRange,
        "ttft_ms": OutlookRange,
        "usd_per_hour": float,
        "usd_per_mtok": OutlookRange,
        "weights": str,
        "why": Any,
    },
)

OutlookRobust = TypedDict(
    "OutlookRobust",
    {
        "plan": OutlookPlan,
        "premium": float,
        "same": bool,
    },
)

OutlookStage = TypedDict(
    "OutlookStage",
    {
        "bound_by": str,
        "broken": list[Any],
        "from": float,
        "to": float,
        "tok_s_per_chip": float,
        "tpot_ms": float,
    },
)

OutlookData = TypedDict(
    "OutlookData",
    {
        "assumptions": list[Any],
        "ends_by": NotRequired[Any],
        "inputs": list[OutlookInput],
        "limits": list[Any],
        "model": str,
        "most": NotRequired[OutlookMost | None],
        "objective": Any,
        "plan": NotRequired[OutlookPlan | None],
        "robust": NotRequired[OutlookRobust | None],
        "schema": NotRequired[int],
        "stages": list[OutlookStage],
        "verdict": Any,
        "workload": Any,
    },
)

def outlook(
    model: str | PathLike[str] | Mapping[str, Any] | None = ...,
    *,
    availability: float | str | None = ...,
    batch: int | str | None = ...,
    cache_headroom: float | str | None = ...,
    cost: float | str | None = ...,
    dcp: str | Sequence[int | str] | None = ...,
    failures_per_chip_year: float | str | None = ...,
    dp: int | str | None = ...,
    ep: int | str | None = ...,
    etp: int | str | None = ...,
    pp: int | str | None = ...,
    tp: int | str | None = ...,
    flags: str | None = ...,
    headroom: float | str | None = ...,
    offload_hit: float | str | None = ...,
    pretend: bool | None = ...,
    repair: float | str | None = ...,
    spare: int | str | None = ...,
    sure: float | str | None = ...,
    think: float | str | None = ...,
    users: float | str | None = ...,
    on: str | PathLike[str] | Mapping[str, Any] | None = ...,
    chips: int | str | None = ...,
    link: str | None = ...,
    quantization: str | Sequence[str] | None = ...,
    compute_dtype: str | None = ...,
    counting: Literal["strict", "lecture"] | None = ...,
    overlap: str | None = ...,
    price: float | str | None = ...,
    basis: Literal["owner-hyperscaler", "owner-neocloud", "rental", "on-demand", "spot", "owner", "contract", "reserved"] | None = ...,
    engine: str | Sequence[str] | None = ...,
    kv_cache_dtype: str | Sequence[str] | None = ...,
    chunks: str | Sequence[float | str] | None = ...,
    drafts: str | Sequence[float | str] | None = ...,
    acceptance: float | str | None = ...,
    aggregated: bool | None = ...,
    scenario: str | None = ...,
    isl: float | str | None = ...,
    osl: float | str | None = ...,
    prefix_hit: float | str | None = ...,
    rate: float | str | None = ...,
    ttft: float | str | None = ...,
    tpot: float | str | None = ...,
    e2e: float | str | None = ...,
    speed: float | str | None = ...,
    throughput: float | str | None = ...,
    no_whole_hosts: bool | None = ...,
    budget: float | str | None = ...,
    power: float | str | None = ...,
    objective: Literal["cost", "chips", "energy", "latency", "throughput", "goodput", "speed"] | None = ...,
    isl_dist: str | None = ...,
    osl_dist: str | None = ...,
    peak: float | str | None = ...,
    trace: str | PathLike[str] | Mapping[str, Any] | None = ...,
    prefill_on: str | PathLike[str] | Mapping[str, Any] | None = ...,
    degrees: Literal["powers", "any"] | None = ...,
    vary: float | str | None = ...,
    files: Mapping[str, str | Mapping[str, Any]] | None = ...,
    catalog: str | PathLike[str] | Catalog | None = ...,
) -> Answer[OutlookData]:
    """How sure a plan is and what comes next: uncertain inputs, bad ends of the intervals, the next bottleneck

    availability: Share of the time that all needed replicas are up, such as 99.9%: as many stand by as that takes.
    batch: Requests in flight in one attention group, instead of the best number.
    cache_headroom: Share of the memory for caches left free, at least.
    cost: Dollars per million output tokens, at most, such as 2: the best is then the fastest for a user, not the cheapest.
    dcp: Sizes of decode context parallel to try beside 1, with vLLM: chips that share the tokens of a cache instead of each keeping a copy.
    failures_per_chip_year: Failures of a chip in a year, where the catalogue's are not meant.
    dp: Data parallel.
    ep: Expert parallel.
    etp: Expert tensor parallel.
    pp: Pipeline parallel.
    tp: Tensor parallel.
    flags: A command line or flags of a server: its engine, formats, chunk, sequences, share of memory and degrees are taken over.
    headroom: Share of the load that is kept free: more replicas than the rate alone needs.
    offload_hit: Share of a prompt found in host memory, beyond what is found on the chips: a choice of the plan when given.
    pretend: Computes what the engine, the chip or the model's context do not allow, and says that it does not exist.
    repair: Time until a failed replica serves again.
    spare: Replicas that stand by, beside those that the traffic needs.
    sure: How sure the limits are to hold: at 90% they hold at the end of the intervals that 90 % of measurements stay below.
    think: Time a user takes between an answer and the next request; none unless given.
    users: Users, instead of a rate: each asks again some time after the last token of an answer.
    model: Model: a catalogue name, a Hugging Face id, or the path of a config.json, of a folder holding one, or of a model .toml.
    on: Machine: a system, a chip, so many chips such as 8xh200, or the path of a chip or system .toml; with the price of a chip and hour in dollars behind an @ where the catalogue's is not meant, such as 8xh100@2.10.
    chips: Use this many chips of the machine instead of all.
    link: Join its chips by this link instead of their own: a rate one way out of each chip such as 25GB/s or 200Gb/s, a kind such as pcie4, pcie4 x8, 10GbE, nvlink (the bridge for two cards), a kind and its rate such as nvlink4:450GB/s, or ideal.
    quantization: Weight formats to choose from: auto is the checkpoint's.
    compute_dtype: Arithmetic to compute in: bf16, fp8, fp4, int8 and others.
    counting: What is counted; lecture: no attention arithmetic, every weight read in every step.
    overlap: max, sum, kv+max (scaling book), or a share from 0 (none) to 1 (perfect).
    price: Price of a chip and hour, such as 2.10/h.
    basis: Whose price.
    engine: Engines to choose from.
    kv_cache_dtype: Cache formats to choose from: auto is the model's, or the engine's with narrow weights.
    chunks: Most tokens in a pass, to choose from; the engine's own when empty.
    drafts: Drafts for each step to choose from; other than 0 only with an acceptance.
    acceptance: Chance that a draft is accepted when all before it were.
    aggregated: Whether prompts may have chips of their own; not with --aggregated.
    scenario: A named workload: what it says holds unless given here.
    isl: Tokens of a prompt, mean; 1,000 unless given.
    osl: Tokens of an answer, mean; 1,000 unless given.
    prefix_hit: Share of a prompt found in the prefix cache.
    rate: Requests per second; as much as the chips serve when absent.
    ttft: Mean time to first token, at most.
    tpot: Mean time per output token, at most.
    e2e: Mean time of a whole request, at most.
    speed: Output tokens per second of one user, at least.
    throughput: Output tokens per second of all, at least.
    no_whole_hosts: Whole hosts are paid for, as far as the chips on offer go; not with --no-whole-hosts, which counts single chips.
    budget: Dollars per hour, at most.
    power: Power at most: of chips with their share of host and cooling where that is known, else their design power.
    objective: What is best.
    isl_dist: Lengths of prompts, such as lognormal:mean=4k,cv=0.8, uniform:1k..4k or exponential:mean=1k.
    osl_dist: Lengths of answers, the same.
    peak: Traffic to plan for over the mean, which rate_per_s is.
    trace: What a trace says; lengths, rate and peak given elsewhere win over it.
    prefill_on: Machines that may compute prompts for those of the setting, with commas between them.
    degrees: Degrees of parallelism to try.
    vary: Share by which inputs are moved down and up.
    """

TraceArrivals = TypedDict(
    "TraceArrivals",
    {
        "gap_cv": float,
        "peak_over_mean": NotRequired[float | None],
        "peak_rate_per_s": NotRequired[float | None],
        "rate_per_s": float,
        "span_s": float,
        "together": float,
    },
)

TraceMeasured = TypedDict(
    "TraceMeasured",
    {
        "cv": float,
        "mean": float,
        "p50": float,
        "p90": float,
        "p99": float,
    },
)

TraceNearestCard = TypedDict(
    "TraceNearestCard",
    {
        "about": str,
        "cached": float,
        "input_factor": float,
        "output_factor": float,
        "scenario": str,
    },
)

TraceHitCard = TypedDict(
    "TraceHitCard",
    {
        "keep_s": NotRequired[float | None],
        "share": float,
    },
)

TraceReuseCard = TypedDict(
    "TraceReuseCard",
    {
        "hits": list[TraceHitCard],
        "kept_tokens": NotRequired[float | None],
        "taken": float,
    },
)

TraceDrawn = TypedDict(
    "TraceDrawn",
    {
        "mean": float,
        "shares": list[float],
        "variance": float,
    },
)

TraceSummary = TypedDict(
    "TraceSummary",
    {
        "covariance": float,
        "input": TraceDrawn,
        "name": str,
        "output": TraceDrawn,
        "peak_over_mean": NotRequired[float | None],
        "prefix_hit": NotRequired[float | None],
        "rate_per_s": NotRequired[float | None],
        "requests": int,
    },
)

TraceData = TypedDict(
    "TraceData",
    {
        "arrivals": NotRequired[TraceArrivals | None],
        "assumptions": list[Any],
        "correlation": float,
        "format": str,
        "input": TraceMeasured,
        "name": str,
        "nearest": NotRequired[TraceNearestCard | None],
        "output": TraceMeasured,
        "requests": int,
        "reuse": NotRequired[TraceReuseCard | None],
        "schema": NotRequired[int],
        "summary": TraceSummary,
        "unanswered": int,
    },
)

def trace(
    text: str | PathLike[str] | Mapping[str, Any] | None = ...,
    *,
    name: str | None = ...,
    keep: float | str | None = ...,
    files: Mapping[str, str | Mapping[str, Any]] | None = ...,
    catalog: str | PathLike[str] | Catalog | None = ...,
) -> Answer[TraceData]:
    """What a trace of requests says: lengths, rate, burstiness, shared prefixes

    name: What to call it.
    text: Its text: Mooncake JSON lines, Azure or BurstGPT CSV, or a CSV with columns for prompts and answers.
    keep: How long a prefix is kept after its last use; for as long as the trace lasts when absent.
    """

PracticeCard = TypedDict(
    "PracticeCard",
    {
        "back": str,
        "claim": str,
        "front": str,
        "topic": Any,
    },
)

PracticeProblem = TypedDict(
    "PracticeProblem",
    {
        "answer": float,
        "claim": str,
        "equation": str,
        "given": NotRequired[float | None],
        "question": str,
        "right": NotRequired[bool | None],
        "topic": Any,
        "unit": str,
        "working": list[str],
    },
)

PracticeData = TypedDict(
    "PracticeData",
    {
        "answered": int,
        "cards": list[PracticeCard],
        "problems": list[PracticeProblem],
        "right": int,
        "schema": NotRequired[int],
        "seed": int,
        "topics": list[Any],
    },
)

def practice(
    *,
    claim: str | None = ...,
    topic: Literal["batch", "racks", "pipeline", "lifecycle", "prices", "reversible"] | None = ...,
    seed: int | str | None = ...,
    number: int | str | None = ...,
    answers: str | Sequence[float | str] | None = ...,
    files: Mapping[str, str | Mapping[str, Any]] | None = ...,
    catalog: str | PathLike[str] | Catalog | None = ...,
) -> Answer[PracticeData]:
    """Flashcards, and problems made at random with worked answers

    claim: Only problems and cards of this claim of the lecture, such as D9.
    topic: Which topic; all when empty.
    seed: Names the set.
    number: Problems, 1 to 50.
    answers: Answers to check, in order, in the unit each problem asks for; none for one not answered.
    """

NamesEntry = TypedDict(
    "NamesEntry",
    {
        "id": str,
        "name": str,
    },
)

NamesData = TypedDict(
    "NamesData",
    {
        "chips": list[NamesEntry],
        "engines": list[str],
        "hosted": list[str],
        "laws": list[str],
        "models": list[NamesEntry],
        "prices": list[NamesEntry],
        "runs": list[str],
        "scenarios": list[str],
        "schema": NotRequired[int],
        "stacks": list[str],
        "systems": list[NamesEntry],
        "tiers": list[str],
        "vendors": list[str],
    },
)

def names(
    *,
    files: Mapping[str, str | Mapping[str, Any]] | None = ...,
    catalog: str | PathLike[str] | Catalog | None = ...,
) -> Answer[NamesData]:
    """What the catalogue holds, by name: for pickers and completions

    """
