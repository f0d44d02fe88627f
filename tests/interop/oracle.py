"""What transformers and torch.optim say about a case, and what the optimizer's formula says about our own gradients."""
import fnmatch

import numpy
import torch
import transformers


def batch_of(case, rows, step):
    """The effective batch of a step, counted from 1."""
    size = case["batch"]
    return torch.from_numpy(rows[(step - 1) * size:step * size].astype(numpy.int64))


def build(config_dir, parameters, kind=transformers.AutoModelForCausalLM):
    """transformers' model of config.json with `parameters` by name (a tied head stands once)."""
    config = transformers.AutoConfig.from_pretrained(config_dir)
    config.use_cache = False
    model = kind.from_config(config, attn_implementation="eager").float().train()
    load(model, parameters)
    return model


def matches_any(patterns, name):
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def trains(training, name):
    return not matches_any(training.get("freeze", []), name) or matches_any(training.get("unfreeze", []), name)


def group_of(training, name):
    """The first of param_groups that names it; {} where none does."""
    return next((group for group in training.get("param_groups", []) if matches_any(group["params"], name)), {})


def freeze(model, training):
    """requires_grad as training.freeze and unfreeze say."""
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(trains(training, name))
    return model


def load(model, parameters):
    named = dict(model.named_parameters())
    missing, unknown = sorted(named.keys() - parameters.keys()), sorted(parameters.keys() - named.keys())
    if missing or unknown:
        raise ValueError(f"dumped parameters: missing {missing}, unknown {unknown}")
    with torch.no_grad():
        for name, parameter in named.items():
            value = parameters[name]
            if tuple(value.shape) != tuple(parameter.shape):
                raise ValueError(f"{name}: dumped {tuple(value.shape)}, transformers {tuple(parameter.shape)}")
            parameter.copy_(torch.from_numpy(value))


def loss_and_gradients(model, ids):
    model.zero_grad(set_to_none=True)
    out = model(input_ids=ids, labels=ids)
    out.loss.backward()
    gradients = {name: p.grad.numpy().copy() for name, p in model.named_parameters() if p.requires_grad}
    return out.loss.item(), out.logits.detach().numpy(), gradients


def logits(model, ids):
    """Without dropout."""
    with torch.no_grad():
        model.eval()
        values = model(input_ids=ids).logits.numpy()
        model.train()
    return values


class Kinks:
    """Tells whether rounding may choose the side of a relu: there the gradient jumps, and theirs need not be ours."""

    NEAR = 1e-6  # of 0; arguments are about 1, and differ by a tenth of it

    def __init__(self, model):
        self.near = False
        for module in model.modules():
            if isinstance(module, torch.nn.ReLU):
                module.register_forward_pre_hook(self._look)

    def _look(self, _, arguments):
        self.near = self.near or bool((arguments[0].abs() < self.NEAR).any())

    def met(self):
        """Since it was asked last."""
        near, self.near = self.near, False
        return near


def total_norm(tensors):
    return float(numpy.sqrt(sum(numpy.square(t.astype(numpy.float64)).sum() for t in tensors.values())))


def schedule_of(optimizer, training):
    """transformers' schedule of that name; torch's for the two that it has not."""
    warmup, total = training["warmup_steps"], training["max_steps"]
    extra = dict(training.get("lr_scheduler_kwargs", {}))
    hf = transformers.optimization
    return {
        "constant": lambda: hf.get_constant_schedule(optimizer),
        "constant_with_warmup": lambda: hf.get_constant_schedule_with_warmup(optimizer, warmup),
        "linear": lambda: hf.get_linear_schedule_with_warmup(optimizer, warmup, total),
        "cosine": lambda: hf.get_cosine_schedule_with_warmup(optimizer, warmup, total, **extra),
        "cosine_with_restarts":
            lambda: hf.get_cosine_with_hard_restarts_schedule_with_warmup(optimizer, warmup, total, **extra),
        "polynomial": lambda: hf.get_polynomial_decay_schedule_with_warmup(optimizer, warmup, total, **extra),
        "warmup_stable_decay": lambda: hf.get_wsd_schedule(optimizer, warmup, num_training_steps=total, **extra),
        "step": lambda: torch.optim.lr_scheduler.StepLR(optimizer, **extra),
        "one_cycle": lambda: torch.optim.lr_scheduler.OneCycleLR(
            optimizer, training["learning_rate"], total_steps=total, **extra),
    }[training["lr_scheduler"]]()


def learning_rate(training, step, peak=None):
    """The rate that the optimizer sees at this step (from 1), of a group with that peak."""
    optimizer = torch.optim.SGD([dict(params=[torch.nn.Parameter(torch.zeros(1))], lr=rate) for rate in (
        training["learning_rate"], training["learning_rate"] if peak is None else peak)], lr=1.0, momentum=0.5)
    optimizer.defaults["lr"] = training["learning_rate"]  # polynomial divides by it
    schedule = schedule_of(optimizer, training)
    for _ in range(step - 1):
        optimizer.step()
        schedule.step()
    return optimizer.param_groups[1]["lr"]


def decayed_names(model):
    """The parameters that the Hugging Face Trainer decays; a tied head stands once."""
    named = {name for name, _ in model.named_parameters()}
    return named & set(transformers.Trainer.get_decay_parameter_names(None, model))


def decays(training, shape):
    return training["weight_decay_scope"] == "all" or len(shape) >= 2


def decay_of(training, name, shape):
    return group_of(training, name).get("weight_decay", training["weight_decay"] if decays(training, shape) else 0.0)


def betas_of(training, name):
    return tuple(group_of(training, name).get("betas", (training["adam_beta1"], training["adam_beta2"])))


def peak_of(training, name):
    return group_of(training, name).get("learning_rate", training["learning_rate"])


def optimizer_of(groups, training):
    if training["optimizer"] == "sgd":
        return torch.optim.SGD(groups, lr=training["learning_rate"], momentum=training["momentum"],
                               dampening=training["dampening"], nesterov=training["nesterov"])
    kind = {"adamw": torch.optim.AdamW, "adam": torch.optim.Adam}[training["optimizer"]]
    return kind(groups, lr=training["learning_rate"], betas=(training["adam_beta1"], training["adam_beta2"]),
                eps=training["adam_epsilon"])


class Alongside:
    """The same ten steps in PyTorch from the same start: torch.optim, clip_grad_norm_, the schedule. `model` and
    `gradients` where it is no language model: what is trained, and what stands for loss_and_gradients."""

    def __init__(self, config_dir, parameters, training, model=None, gradients=None):
        self.model = freeze(build(config_dir, parameters) if model is None else model, training)
        self.gradients = gradients or loss_and_gradients
        self.training = training
        groups = {}
        for name, parameter in self.model.named_parameters():
            key = decay_of(training, name, parameter.shape), betas_of(training, name), peak_of(training, name)
            if parameter.requires_grad:
                groups.setdefault(key, []).append(parameter)
        adam = training["optimizer"] != "sgd"
        self.peaks = [peak for _, _, peak in groups]
        self.optimizer = optimizer_of([dict(params=members, weight_decay=decay) | (dict(betas=betas) if adam else {})
                                       for (decay, betas, _), members in groups.items()], training)
        self.steps = 0
        self.meaningful = {name: numpy.ones(p.shape, bool) for name, p in self.model.named_parameters()}

    def step(self, ids, dumped_gradients):
        """Returns the loss and the norm of the gradients before clipping."""
        loss, _, gradients = self.gradients(self.model, ids)
        self.note_meaningful(gradients, dumped_gradients)
        if self.training["max_grad_norm"]:
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.training["max_grad_norm"])
        self.steps += 1
        for group, peak in zip(self.optimizer.param_groups, self.peaks):
            group["lr"] = learning_rate(self.training, self.steps, peak)
        self.optimizer.step()
        return loss, total_norm(gradients)

    def note_meaningful(self, gradients, dumped):
        """Adam divides by the gradient's own size, so an element whose gradient is rounding noise (a key's bias
        in GPT-2, whose true gradient is 0) moves by the whole rate in a random direction. Those are left out of
        the comparison of parameters; an exact 0 on both sides (an embedding row that no token used) is not noise.
        SGD does not divide: there everything is compared."""
        if self.training["optimizer"] == "sgd":
            return
        count = sum(gradient.size for gradient in gradients.values())
        overall = total_norm(gradients) / count ** 0.5
        for name, gradient in gradients.items():
            size = numpy.abs(gradient)
            typical = float(numpy.sqrt(numpy.mean(numpy.square(gradient, dtype=numpy.float64))))
            self.meaningful[name] &= ((size == 0) & (dumped.get(name, 1) == 0)) | (size >= 1e-3 * max(typical, 1e-3 * overall))

    def parameters(self):
        return {name: p.detach().numpy() for name, p in self.model.named_parameters()}


class Update:
    """The optimizer in fp64, fed with our own dumped gradients: what the next parameters must be."""

    def __init__(self, training):
        self.training = training
        self.states, self.steps = {}, 0
        self.rule = self.sgd if training["optimizer"] == "sgd" else self.adam

    def apply(self, parameters, gradients):
        t = self.training
        self.steps += 1
        norm = total_norm(gradients)
        scale = min(1.0, t["max_grad_norm"] / (norm + 1e-6)) if t["max_grad_norm"] else 1.0
        after = {}
        for name, before in parameters.items():
            if not trains(t, name):
                after[name] = before
                continue
            rate = learning_rate(t, self.steps, peak_of(t, name))
            p, g = before.astype(numpy.float64), gradients[name].astype(numpy.float64) * scale
            after[name] = self.rule(name, p, g, rate, decay_of(t, name, p.shape))
        return after

    def adam(self, name, p, g, rate, decay):
        t = self.training
        first, second = self.states.get(name, (0.0, 0.0))
        beta1, beta2 = betas_of(t, name)
        m = beta1 * first + (1 - beta1) * g
        v = beta2 * second + (1 - beta2) * g * g
        self.states[name] = m, v
        corrected = numpy.sqrt(v / (1 - beta2 ** self.steps)) + t["adam_epsilon"]
        return p * (1 - rate * decay) - rate / (1 - beta1 ** self.steps) * m / corrected

    def sgd(self, name, p, g, rate, decay):
        t = self.training
        g = g + decay * p
        if t["momentum"] == 0:
            return p - rate * g
        before = self.states.get(name)
        buffer = g if before is None else t["momentum"] * before + (1 - t["dampening"]) * g
        self.states[name] = buffer
        return p - rate * (g + t["momentum"] * buffer if t["nesterov"] else buffer)
