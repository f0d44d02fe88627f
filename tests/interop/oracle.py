"""What transformers and torch.optim say about a case, and what AdamW's formula says about our own gradients."""
import numpy
import torch
import transformers


def batch_of(case, rows, step):
    """The effective batch of a step, counted from 1."""
    size = case["batch"]
    return torch.from_numpy(rows[(step - 1) * size:step * size].astype(numpy.int64))


def build(config_dir, parameters):
    """transformers' model of config.json with `parameters` by name (a tied head stands once)."""
    config = transformers.AutoConfig.from_pretrained(config_dir)
    config.use_cache = False
    model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager").float().train()
    load(model, parameters)
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
    gradients = {name: p.grad.numpy().copy() for name, p in model.named_parameters()}
    return out.loss.item(), out.logits.detach().numpy(), gradients


def total_norm(tensors):
    return float(numpy.sqrt(sum(numpy.square(t.astype(numpy.float64)).sum() for t in tensors.values())))


def learning_rate(training, step):
    """transformers' cosine schedule with warm-up, as its optimizer sees it at this step (from 1)."""
    parameter = torch.nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.SGD([parameter], lr=training["learning_rate"])
    schedule = transformers.get_cosine_schedule_with_warmup(optimizer, training["warmup_steps"], training["max_steps"])
    for _ in range(step - 1):
        optimizer.step()
        schedule.step()
    return schedule.get_last_lr()[0]


def decays(training, shape):
    return training["weight_decay_scope"] == "all" or len(shape) >= 2


class Alongside:
    """The same ten steps in PyTorch from the same start: torch.optim.AdamW, clip_grad_norm_, the schedule."""

    def __init__(self, config_dir, parameters, training):
        self.model = build(config_dir, parameters)
        self.training = training
        groups = {True: [], False: []}
        for parameter in self.model.parameters():
            groups[decays(training, parameter.shape)].append(parameter)
        self.optimizer = torch.optim.AdamW(
            [dict(params=members, weight_decay=training["weight_decay"] if decay else 0.0)
             for decay, members in groups.items() if members],
            lr=training["learning_rate"], betas=(training["adam_beta1"], training["adam_beta2"]),
            eps=training["adam_epsilon"])
        self.schedule = transformers.get_cosine_schedule_with_warmup(
            self.optimizer, training["warmup_steps"], training["max_steps"])
        self.meaningful = {name: numpy.ones(p.shape, bool) for name, p in self.model.named_parameters()}

    def step(self, ids, dumped_gradients):
        """Returns the loss and the norm of the gradients before clipping."""
        loss, _, gradients = loss_and_gradients(self.model, ids)
        self.note_meaningful(gradients, dumped_gradients)
        if self.training["max_grad_norm"]:
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.training["max_grad_norm"])
        self.optimizer.step()
        self.schedule.step()
        return loss, total_norm(gradients)

    def note_meaningful(self, gradients, dumped):
        """Adam divides by the gradient's own size, so an element whose gradient is rounding noise (a key's bias
        in GPT-2, whose true gradient is 0) moves by the whole rate in a random direction. Those are left out of
        the comparison of parameters; an exact 0 on both sides (an embedding row that no token used) is not noise."""
        count = sum(gradient.size for gradient in gradients.values())
        overall = total_norm(gradients) / count ** 0.5
        for name, gradient in gradients.items():
            size = numpy.abs(gradient)
            typical = float(numpy.sqrt(numpy.mean(numpy.square(gradient, dtype=numpy.float64))))
            self.meaningful[name] &= ((size == 0) & (dumped.get(name, 1) == 0)) | (size >= 1e-3 * max(typical, 1e-3 * overall))

    def parameters(self):
        return {name: p.detach().numpy() for name, p in self.model.named_parameters()}


class Update:
    """AdamW in fp64, fed with our own dumped gradients: what the next parameters must be."""

    def __init__(self, training):
        self.training = training
        self.first, self.second, self.steps = {}, {}, 0

    def apply(self, parameters, gradients):
        t = self.training
        self.steps += 1
        rate = learning_rate(t, self.steps)
        norm = total_norm(gradients)
        scale = min(1.0, t["max_grad_norm"] / (norm + 1e-6)) if t["max_grad_norm"] else 1.0
        after = {}
        for name, before in parameters.items():
            p = before.astype(numpy.float64)
            g = gradients[name].astype(numpy.float64) * scale
            m = self.first[name] = t["adam_beta1"] * self.first.get(name, 0.0) + (1 - t["adam_beta1"]) * g
            v = self.second[name] = t["adam_beta2"] * self.second.get(name, 0.0) + (1 - t["adam_beta2"]) * g * g
            if decays(t, p.shape):
                p = p * (1 - rate * t["weight_decay"])
            corrected = numpy.sqrt(v / (1 - t["adam_beta2"] ** self.steps)) + t["adam_epsilon"]
            after[name] = p - rate / (1 - t["adam_beta1"] ** self.steps) * m / corrected
        return after
