#include "planner/cost/cost_model.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "ops/rounding.h"

namespace plimsoll::planner {
namespace {

/// Operations of a softmax's row an element, of which a head's loss is made beside its products.
constexpr double kSoftmaxFlops = 20;

double extent(double value, double half) { return value / (value + half); }

Part part_of(const ir::Op& op) {
  if (op.def->is_copy) return Part::kCopies;
  if (op.def->is_loss) return Part::kLoss;
  if (op.def->work.kind == ir::WorkKind::kProduct) return Part::kProducts;
  if (op.def->work.kind == ir::WorkKind::kAttention) return Part::kAttention;
  return op.block == ir::kUpdateBlock ? Part::kOptimizer : Part::kMemory;
}

/// What of the rate measured under `key` is left: of the loss head, as its products have it.
double share_of(std::string_view key, const ThreadShares& share) {
  const ir::Work& work = work_of_key(key);
  if (work.kind == ir::WorkKind::kProduct || work.kind == ir::WorkKind::kLossHead) return share.products;
  if (work.kind == ir::WorkKind::kAttention) return share.attention;
  return work.is_multi_tensor ? share.updates : share.memory_bound;
}

/// What kernels of their own move to round a product's operands (Target::rounds_apart).
struct Rounding {
  double bytes = 0;
  int launches = 0;
};

Rounding rounding_of(const ir::OpDef& def, const ir::OpTypes& t) {
  Rounding rounding;
  const bool multiplies = def.work.kind == ir::WorkKind::kProduct || def.work.kind == ir::WorkKind::kLossHead;
  if (!multiplies || t.inputs.size() < 2) return rounding;
  const ops::Precision precision = ops::precision_of(t.attrs, t.inputs[0].dtype, t.inputs[1].dtype);
  const ir::DType to = ops::stored_dtype(precision);
  for (size_t i = 0; i < static_cast<size_t>(def.rounded_operands); ++i) {
    const ir::TensorType& x = t.inputs[i];
    const bool is_as_multiplied = x.dtype == to && precision != ops::Precision::kTf32;
    if (!t.has(i) || !ir::is_computable(x.dtype) || is_as_multiplied) continue;
    rounding.bytes += static_cast<double>(x.num_elements() * (ir::bits(x.dtype) + ir::bits(to))) / 8;
    ++rounding.launches;
  }
  return rounding;
}

double between(double a, double b, double part) {
  return std::exp(std::lerp(std::log(a), std::log(b), part));
}

}  // namespace

ThreadShares thread_shares(const MachineProfile& profile, int64_t threads) {
  const auto in_proportion = [&](const ThreadShares& to) {
    const double times = static_cast<double>(threads) / static_cast<double>(to.threads);
    return ThreadShares{threads, times * to.products, times * to.attention, times * to.memory_bound,
                        times * to.updates};
  };
  const ThreadShares all{.threads = profile.threads};
  if (threads >= profile.threads) {
    // Of a measured machine these are all the threads it can run at once.
    return is_measured(profile) ? ThreadShares{.threads = threads} : in_proportion(all);
  }
  std::vector<ThreadShares> known = profile.fewer_threads;
  known.push_back(all);
  const auto above = std::ranges::find_if(known, [&](const ThreadShares& s) { return s.threads >= threads; });
  if (above == known.begin() || above->threads == threads) return in_proportion(*above);
  const ThreadShares& below = *std::prev(above);
  const auto log = [](int64_t n) { return std::log(static_cast<double>(n)); };
  const double part = (log(threads) - log(below.threads)) / (log(above->threads) - log(below.threads));
  return {threads, between(below.products, above->products, part),
          between(below.attention, above->attention, part),
          between(below.memory_bound, above->memory_bound, part),
          between(below.updates, above->updates, part)};
}

HostRates host_rates(const MachineProfile& p) {
  if (p.memory_bytes > 0) return {.update_bandwidth = 25.6e9, .flops = 100e9};
  return {.update_bandwidth = p.optimizer_bandwidth, .flops = p.product_flops[0]};
}

std::string_view name(Part part) {
  constexpr std::string_view kNames[kNumParts] = {"products",  "attention", "loss head", "memory-bound ops",
                                                  "optimizer", "copies",    "network"};
  return kNames[static_cast<size_t>(part)];
}

double StepSeconds::total() const { return std::accumulate(parts.begin(), parts.end(), 0.0); }

void StepSeconds::add(const StepSeconds& other, double times) {
  hidden += times * other.hidden;
  for (size_t i = 0; i < kNumParts; ++i) {
    parts[i] += times * other.parts[i];
    by_memory[i] += times * other.by_memory[i];
  }
}

CostModel::CostModel(const MachineProfile& profile, int num_threads, const Network& network,
                     const runtime::Target* target)
    : target_(target), profile_(profile), network_(network) {
  const bool is_card = profile.memory_bytes > 0;
  if (!is_card && num_threads >= 1) {
    const ThreadShares share = thread_shares(profile, num_threads);
    for (double& rate : profile_.product_flops) rate *= share.products;
    for (double& rate : profile_.attention_flops) rate *= share.attention;
    for (OpPoint& point : profile_.points) point.rate *= share_of(point.kind, share);
    for (double* rate : {&profile_.vector_flops, &profile_.cache_bandwidth, &profile_.memory_bandwidth})
      *rate *= share.memory_bound;
    profile_.optimizer_bandwidth *= share.updates;
  }
  // A copy within the machine's memory reads and writes; a card's bytes go through the host's.
  if (network_.intra <= 0)
    network_.intra = std::max(1.0, is_card ? profile_.copy_in_bandwidth : profile_.memory_bandwidth) / 2;
  for (const OpPoint& point : profile_.points) {
    auto at = std::ranges::find_if(
        known_, [&](const Known& k) { return k.kind == point.kind && k.type == point.type; });
    if (at == known_.end()) at = known_.insert(at, {point.kind, point.type, {}, {}, {}});
    Known::Point logs{{}, std::log(point.rate)};
    std::ranges::transform(point.extents, logs.log_extents.begin(),
                           [](int64_t extent) { return std::log2(static_cast<double>(extent)); });
    const bool is_first = at->points.empty();
    for (size_t i = 0; i < 3; ++i) {
      at->least[i] = is_first ? logs.log_extents[i] : std::min(at->least[i], logs.log_extents[i]);
      at->most[i] = is_first ? logs.log_extents[i] : std::max(at->most[i], logs.log_extents[i]);
    }
    at->points.push_back(logs);
  }
}

const CostModel::Known* CostModel::known(const OpWork& of) const {
  const auto find = [&](std::string_view kind, ProductType type) -> const Known* {
    const auto at =
        std::ranges::find_if(known_, [&](const Known& k) { return k.type == type && k.kind == kind; });
    return at == known_.end() ? nullptr : &*at;
  };
  if (const Known* exact = find(of.kind, of.type); exact != nullptr) return exact;
  if (of.type == ProductType::kTf32) return find(of.kind, ProductType::kF32);
  // What a memory-bound op moves counts, not what it computes in.
  if (of.extents[1] == 1 && of.type == ProductType::kF16) return find(of.kind, ProductType::kBf16);
  return nullptr;
}

double CostModel::measured_rate(const OpWork& of) const {
  const Known* measured = known(of);
  if (measured == nullptr) return 0;
  double logs[3];
  for (size_t i = 0; i < 3; ++i)
    logs[i] = std::clamp(std::log2(of.extents[i]), measured->least[i], measured->most[i]);
  double weights = 0, sum = 0;
  for (const Known::Point& p : measured->points) {
    double distance = 0.01;
    for (size_t i = 0; i < 3; ++i) distance += (logs[i] - p.log_extents[i]) * (logs[i] - p.log_extents[i]);
    const double weight = 1 / (distance * distance);
    weights += weight;
    sum += weight * p.log_rate;
  }
  return std::exp(sum / weights);
}

double CostModel::factor_of(const OpWork& of) const {
  const auto at = std::ranges::find_if(
      profile_.factors, [&](const OpFactor& f) { return f.type == of.type && f.kind == of.kind; });
  return at == profile_.factors.end() ? 1 : at->factor;
}

double CostModel::code_rate(const ir::OpTypes& t) const {
  if (target_ == nullptr || t.attrs.find("a_scheme") == nullptr) return 0;
  const std::string_view word = target_->computes_codes_in(t);
  return word == "fp8" ? profile_.fp8_flops : word == "fp4" ? profile_.fp4_flops : 0;
}

double CostModel::arithmetic_seconds(Part part, const OpWork& of, const ir::OpTypes& t,
                                     const ir::Cost& cost) const {
  const auto type = static_cast<size_t>(of.type);
  const double half = profile_.half_extent;
  const double on_codes = part == Part::kProducts ? code_rate(t) : 0;
  const double products = (on_codes > 0 ? on_codes : profile_.product_flops[type]) *
                          extent(of.extents[0], half) * extent(of.extents[1], half) *
                          extent(of.extents[2], half);
  if (part == Part::kProducts) return cost.flops / products;
  if (part == Part::kAttention) {
    const double blocks = of.extents[0] * std::ceil(of.extents[1] / 64);
    const double reached =
        profile_.attention_half_blocks > 0 ? extent(blocks, profile_.attention_half_blocks) : 1;
    return cost.flops / (profile_.attention_flops[type] * reached);
  }
  if (part == Part::kCopies) return 0;
  if (part != Part::kLoss || of.extents[1] == 1) return cost.flops / profile_.vector_flops;
  const double softmax = kSoftmaxFlops * static_cast<double>(t.inputs[0].shape.num_rows()) * of.extents[1];
  return std::max(0.0, cost.flops - softmax) / products + softmax / profile_.vector_flops;
}

CostModel::Time CostModel::time_of(Part part, const ir::OpDef& def, const ir::OpTypes& t,
                                   const ir::Cost& cost) const {
  const OpWork of = op_work(def, t, cost);
  const bool is_cached = cost.bytes <= profile_.cache_bytes;
  const double bandwidth = part == Part::kOptimizer ? profile_.optimizer_bandwidth
                           : is_cached              ? profile_.cache_bandwidth
                                                    : profile_.memory_bandwidth;
  Time time{arithmetic_seconds(part, of, t, cost), cost.bytes / bandwidth};
  if (part == Part::kCopies)  // one side of the link
    time.memory = cost.bytes / 2 / std::max(1.0, profile_.copy_in_bandwidth);
  if (const double rate = measured_rate(of); rate > 0 && code_rate(t) == 0) {
    double& bound = of.extents[1] == 1 && time.memory > time.arithmetic ? time.memory : time.arithmetic;
    if (of.extents[1] == 1) time = {};
    bound = of.work / rate;
  }
  const double factor = profile_.factors.empty() ? 1 : factor_of(of);
  return {time.arithmetic * factor, time.memory * factor};
}

/// A described network is taken at its word; of this machine's memory runs may say more.
double CostModel::network_seconds(const ir::OpDef& def, const ir::OpTypes& types,
                                  const ir::Cost& cost) const {
  const double seconds = network_.seconds(def.traffic(types)) + profile_.launch_seconds;
  const bool corrects = !network_.is_described && !profile_.factors.empty();
  return corrects ? seconds * factor_of(op_work(def, types, cost)) : seconds;
}

double CostModel::host_seconds(const ir::Graph& graph, const ir::Op& op) const {
  if (profile_.memory_bytes > 0) {
    const HostRates host = host_rates(profile_);
    const ir::Cost cost = ir::op_cost(graph, op);
    return std::max(cost.bytes / host.update_bandwidth, cost.flops / host.flops);
  }
  StepSeconds seconds;
  add(graph, op, seconds);
  return seconds.total();
}

void CostModel::add(const ir::Graph& graph, const ir::Op& op, StepSeconds& seconds) const {
  if (op.def->is_view || op.def->state != ir::StateAccess::kNone) return;
  const ir::OpTypes types = ir::op_types(graph, op);
  const ir::Cost cost = ir::op_cost(graph, op);
  if (op.def->traffic != nullptr) {
    seconds.parts[static_cast<size_t>(Part::kNetwork)] += network_seconds(*op.def, types, cost);
    return;
  }
  const Part part = part_of(op);
  const Time time = time_of(part, *op.def, types, cost);
  const double most = std::max(time.arithmetic, time.memory);
  double rounding = 0;
  if (target_ != nullptr && target_->rounds_apart()) {
    const auto [bytes, launches] = rounding_of(*op.def, types);
    rounding = bytes / (bytes <= profile_.cache_bytes ? profile_.cache_bandwidth : profile_.memory_bandwidth);
    seconds.parts[static_cast<size_t>(part)] += rounding + launches * profile_.launch_seconds;
  }
  seconds.parts[static_cast<size_t>(part)] += most + profile_.launch_seconds;
  seconds.by_memory[static_cast<size_t>(part)] += rounding + (time.memory > time.arithmetic ? most : 0);
}

}  // namespace plimsoll::planner
