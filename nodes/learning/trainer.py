"""Local training and evaluation on matrices of flat models.

Nothing here takes simulated time. Models are float32 rows in the order of `module.parameters()`; callers see no torch.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from nodes.datasets.dataset import Dataset
from nodes.learning.generators.cgan import GeneratedRecords
from nodes.learning.kernels.cnn import recognise_cnn
from nodes.learning.kernels.generic import OneByOne, Stacked, unflatten
from nodes.learning.kernels.interface import Kernel, Samples, SgdStep, StackTask
from nodes.learning.kernels.mlp import match_mlp
from nodes.learning.kernels.per_sample import choose_private_kernel
from nodes.learning.minibatches import draw_batches
from nodes.learning.model_kinds.models import Model
from nodes.learning.model_kinds.module_contract import check_module, layer_sizes
from nodes.learning.objectives import ClientObjectives, CrossEntropy, Objective
from nodes.learning.private_records.dp_sgd import DpSgd, RecordNoise
from nodes.learning.private_records.record_batches import Mixture, fixed_sets
from nodes.learning.thread_pool import chunks, run_parallel
from nodes.learning.training import Training
from p2p.random_streams import stream

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]
# Bytes of models per stack, about as many as the cache holds during its steps. Each call holds Python's lock for a
# moment, so fewer calls on larger stacks let threads wait less for each other; but no more cores work than there are
# stacks, eight for a hundred models of 200,000 parameters. The cores do not change their number, which is in the bits.
CHUNK_BYTES = 10 << 20
# Bounds the memory of the scores, which are [models, records, classes].
TEST_RECORDS_AT_ONCE = 1000


class Learner:
    """Trains and evaluates the models of many clients at once.

    Guarantees:
        - A client's result depends only on its model, its records, the seed and the round. The grouping of clients
          changes it only within float tolerance.
        - Equal calls give bit-identical results on the same machine, for any number of threads.

    Args:
        objective: what clients minimise; by default cross-entropy.
        record_noise: protection of single records by DP-SGD; by default none.
        generated: records that take the place of some real ones, and their share; by default none.
        validation: share of the test records that is a public validation set; accuracy is measured on the others.
        at_once: clients trained in one stack; by default as many as fit the cache.
        threads: stacks trained in parallel; by default torch's number of threads.
    """

    def __init__(
        self,
        model: Model,
        dataset: Dataset,
        shards: list[Ints],
        training: Training,
        seed: int,
        *,
        objective: Objective | None = None,
        record_noise: RecordNoise | None = None,
        generated: tuple[GeneratedRecords, float] | None = None,
        validation: float = 0.0,
        at_once: int | None = None,
        threads: int | None = None,
    ) -> None:
        self.module, self._initial = _initialise(model, dataset, seed)
        self.dimension = len(self._initial)
        self.classes, self.training_records = dataset.classes, len(dataset.train_y)
        self.layers = layer_sizes(self.module)
        self._train = _samples(dataset.train_x, dataset.train_y, dataset.classes)
        public = _public_records(len(dataset.test_y), validation, seed)
        self._test = _samples(dataset.test_x[~public], dataset.test_y[~public], dataset.classes)
        self._public = _samples(dataset.test_x[public], dataset.test_y[public], dataset.classes)
        self._shards, self._training, self._seed = shards, training, seed
        self._counts = np.array([len(shard) for shard in shards], dtype=np.int64)
        # By node; asked for every member of every round.
        self._node_steps = np.array([training.steps(count) for count in self._counts.tolist()], dtype=np.int64)
        self._objective = objective or CrossEntropy()
        self.kernel = choose_kernel(self.module, self._train.records[:2])
        self.generated = None if generated is None else generated[0]
        mixture = None if generated is None else self._mix_in(*generated, dataset.classes)
        # Passes go over fixed sets; coins are flipped for all real records.
        passes = record_noise is None or record_noise.settings.sampling == "shuffled"
        self._sets = shards if mixture is None or not passes else fixed_sets(shards, mixture, seed)
        self._dp_sgd: DpSgd | None = None
        if record_noise is not None:
            private = choose_private_kernel(self.module, self.kernel)
            self._dp_sgd = DpSgd(private, record_noise, training, self._sets, seed, mixture)
        # Without a gain from stacking, single models balance the load between threads best.
        self._at_once = at_once or (max(1, CHUNK_BYTES // (4 * self.dimension)) if self.kernel.stacks else 1)
        self.threads = threads or torch.get_num_threads()

    def initial(self) -> Floats:
        """Returns the common initial model, [d]."""
        return self._initial.copy()

    def test_labels(self) -> Ints:
        """Returns the classes of the test records."""
        return self._test.labels.numpy()

    def records(self, node: int) -> int:
        """Returns the number of training records of a client."""
        return len(self._shards[node])

    def train(
        self,
        models: Floats,
        nodes: Sequence[int],
        round_number: int,
        numbers: Sequence[int] | None = None,
        losses: NDArray[np.float64] | None = None,
    ) -> Floats:
        """Returns the models [k, d] of `nodes` after a round's local training; the input is not changed.

        Args:
            numbers: how many trainings each node had before; needed for DP-SGD, which names its draws by them.
            losses: filled with each node's mean cross-entropy in its steps, summed over local epochs.
        """
        # Sorted by number of steps: the models that still train are then always the first rows of a stack.
        numbered = np.asarray(nodes, dtype=np.int64)
        by_length = np.argsort(-self._node_steps[numbered], kind="stable")
        rate = self._training.rate(round_number)
        trained = np.empty(models.shape, dtype=np.float32)

        def train_chunk(chunk: slice) -> None:
            rows = by_length[chunk]
            stack = models[rows].astype(np.float32, copy=False)  # indexing copies, so the kernel may write to it
            members = numbered[rows].tolist()
            records = torch.from_numpy(self._counts[members].astype(np.float32))
            summed = None if losses is None else torch.zeros(len(members))
            objectives = ClientObjectives(self._objective, records, summed)
            if self._dp_sgd is None:
                steps = self._steps(members, round_number)
                task = StackTask(self._train, steps, self._training, rate, objectives)
                self.kernel.train(torch.from_numpy(stack), task)
            else:
                own = _numbers(numbers, rows)
                self._dp_sgd.train(torch.from_numpy(stack), self._train, members, own, round_number, objectives)
            trained[rows] = stack
            if losses is not None and summed is not None:
                losses[rows] = (summed / records.clamp(min=1.0)).numpy()

        self._run(train_chunk, len(nodes))
        return trained

    def evaluate(self, models: Floats) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Returns the accuracy [k] and mean cross-entropy [k] of each model on the global test set."""
        # After a common aggregation many clients hold equal models; each distinct model is evaluated once.
        first, inverse = _distinct(models)
        figures = np.empty((2, len(first)))

        def measure_chunk(chunk: slice) -> None:
            stack = torch.from_numpy(np.asarray(models[first[chunk]], dtype=np.float32))
            figures[:, chunk] = self._measure(stack, self._test)

        self._run(measure_chunk, len(first))
        return figures[0, inverse], figures[1, inverse]

    def public_loss(self, model: Floats) -> float:
        """Returns the mean cross-entropy of a model on the public validation set."""
        return float(self._measure(torch.from_numpy(model[None].copy()), self._public)[1, 0])

    def own_losses(self, models: Floats, nodes: Sequence[int]) -> NDArray[np.float64]:
        """Returns the mean cross-entropy of each node's model on the node's own records; 0 if it has none."""
        losses = np.zeros(len(nodes))

        def measure(row: int) -> None:
            if self.records(nodes[row]):
                mine = torch.from_numpy(self._shards[nodes[row]])
                own = Samples(*(column[mine] for column in self._train.columns()))
                losses[row] = self._measure(torch.from_numpy(models[row : row + 1].copy()), own)[1, 0]

        # One client per task: their numbers of records differ, so they do not stack.
        run_parallel(measure, range(len(nodes)), self.threads if self.kernel.parallel else 1)
        return losses

    def state_dict(self, vector: Floats) -> dict[str, Tensor]:
        """Returns a flat model as named tensors, ready to save or to load into the module."""
        flat = torch.from_numpy(np.array(vector, dtype=np.float32))
        return {name: part.clone() for name, part in unflatten(self.module, flat).items()}

    def _mix_in(self, generated: GeneratedRecords, share: float, classes: int) -> Mixture:
        """Appends the generated records to the training records, and returns where they are."""
        first, added = len(self._train.labels), _samples(generated.records, generated.labels, classes)
        pairs = zip(self._train.columns(), added.columns(), strict=True)
        self._train = Samples(*(torch.cat(pair) for pair in pairs))
        return Mixture(share, [first + shard for shard in generated.shards], first)

    def _steps(self, nodes: Sequence[int], round_number: int) -> list[SgdStep]:
        drawn = draw_batches(self._sets, nodes, self._training, self._seed, round_number)
        rows, weights = torch.from_numpy(drawn.rows), torch.from_numpy(drawn.weights)
        return [SgdStep(rows[i, :count], weights[i, :count]) for i, count in enumerate(drawn.active.tolist())]

    def _measure(self, stack: Tensor, samples: Samples) -> NDArray[np.float64]:
        # float64: a float32 sum over thousands of losses would lose digits.
        right = torch.zeros(len(stack), dtype=torch.float64)
        loss = torch.zeros(len(stack), dtype=torch.float64)
        for start in range(0, len(samples.labels), TEST_RECORDS_AT_ONCE):
            part = slice(start, start + TEST_RECORDS_AT_ONCE)
            records, labels = samples.records[part], samples.labels[part]
            scores = self.kernel.scores(stack, records)
            right += (scores.argmax(2) == labels).sum(1)
            chosen = scores.gather(2, labels.expand(len(stack), -1).unsqueeze(2)).squeeze(2)
            loss += (scores.logsumexp(2) - chosen).sum(1, dtype=torch.float64)
        return (torch.stack([right, loss]) / len(samples.labels)).numpy()

    def _run(self, work: Callable[[slice], None], count: int) -> None:
        """Runs `work` on `count` models, in stacks."""
        parallel = self.kernel.parallel and (self._dp_sgd is None or self._dp_sgd.kernel.parallel)
        stacks = max(1, -(-count // self._at_once))
        # Of equal size: no thread is left with a small stack while another has a full one.
        run_parallel(work, chunks(count, max(1, -(-count // stacks))), self.threads if parallel else 1)


def _numbers(numbers: Sequence[int] | None, rows: Ints) -> list[int]:
    # Without them, noise of one training would be used for another.
    if numbers is None:
        raise ValueError("DP-SGD needs the number of each client's training")
    return [numbers[row] for row in rows.tolist()]


def choose_kernel(module: nn.Module, records: Tensor) -> Kernel:
    """Returns the fastest kernel that supports `module`; the stacked kernel is tried on a few records."""
    by_hand = match_mlp(module, records[0].numel()) or recognise_cnn(module)
    if by_hand is not None:
        return by_hand
    stacked = Stacked(module)
    try:
        _check_supported(stacked, module, records)
    except (RuntimeError, NotImplementedError):
        return OneByOne(module)
    return stacked


def _check_supported(kernel: Kernel, module: nn.Module, records: Tensor) -> None:
    # One step of two models is enough: vmap raises at the first unsupported operation.
    flat = torch.cat([part.detach().flatten() for part in module.parameters()])
    step = SgdStep(torch.zeros(2, 1, dtype=torch.int64), torch.ones(2, 1))
    samples = Samples(records, torch.zeros(len(records), dtype=torch.int64), torch.zeros_like(module(records)))
    objectives = ClientObjectives(CrossEntropy(), torch.ones(2))
    kernel.train(torch.stack([flat, flat]), StackTask(samples, [step], Training(), 0.1, objectives))


def _initialise(model: Model, dataset: Dataset, seed: int) -> tuple[nn.Module, Floats]:
    """Returns the module and its initial weights, drawn by torch's initialisation from the seed's stream."""
    # Some models accept some records only, which a torch module would tell by a traceback.
    if hasattr(model, "check_records"):
        for records in (dataset.train_x, dataset.test_x):
            model.check_records(records, dataset.classes)
    generator = torch.Generator().manual_seed(int(stream(seed, "model").integers(2**63)))
    # Torch initialises from its global generator; the fork restores that generator afterwards.
    with torch.random.fork_rng(devices=[]):
        torch.set_rng_state(generator.get_state())
        module = model.build(dataset.shape, dataset.classes)
    check_module(module, _tensor(dataset.train_x[:2]), dataset.classes)
    flat = torch.cat([part.detach().flatten() for part in module.parameters()])
    return module, flat.numpy().astype(np.float32)


def _distinct(models: Floats) -> tuple[list[int], Ints]:
    """Returns the first row of each distinct model, and for each row the index of its distinct model."""
    seen: dict[bytes, int] = {}
    first: list[int] = []
    inverse = np.empty(len(models), dtype=np.int64)
    # Hashes, because `np.unique` over rows would sort the whole matrix.
    for row, model in enumerate(models):
        key = hashlib.sha256(model.tobytes()).digest()
        inverse[row] = seen.setdefault(key, len(first))
        if inverse[row] == len(first):
            first.append(row)
    return first, inverse


def _public_records(count: int, share: float, seed: int) -> NDArray[np.bool_]:
    """Marks the test records that are the public validation set; at least one is left to test on."""
    public = np.zeros(count, dtype=np.bool_)
    if share > 0.0:
        chosen = min(max(1, round(share * count)), count - 1)
        public[stream(seed, "validation").permutation(count)[:chosen]] = True
    return public


def _samples(records: Floats, labels: Ints, classes: int) -> Samples:
    targets = nn.functional.one_hot(_tensor(labels), classes).to(torch.float32)
    return Samples(_tensor(records), _tensor(labels), targets)


def _tensor(array: NDArray[np.generic]) -> Tensor:
    # Torch warns about read-only arrays; requiring "W" copies those.
    return torch.from_numpy(np.require(array, requirements=["C", "W"]))
