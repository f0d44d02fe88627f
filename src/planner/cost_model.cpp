#include "planner/cost_model.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

namespace plimsoll::planner {
namespace {

/// Operations of a softmax's row an element, of which a head's loss is made beside its products.
constexpr double kSoftmaxFlops = 20;

double extent(double value, double half) { return value / (value + half); }

Part part_of(const ir::Op& op) {
  const std::string_view name = op.def->name;
  if (op.def->is_copy) return Part::kCopies;
  if (op.def->is_loss) return Part::kLoss;
  if (name.starts_with("linear")) return Part::kProducts;
  if (name.starts_with("attention")) return Part::kAttention;
  return op.block == ir::kUpdateBlock ? Part::kOptimizer : Part::kMemory;
}

}  // namespace

std::string_view name(Part part) {
  constexpr std::string_view kNames[kNumParts] = {"products",         "attention", "loss head",
                                                  "memory-bound ops", "optimizer", "copies"};
  return kNames[static_cast<size_t>(part)];
}

double StepSeconds::total() const { return std::accumulate(parts.begin(), parts.end(), 0.0); }

void StepSeconds::add(const StepSeconds& other, double times) {
  for (size_t i = 0; i < kNumParts; ++i) {
    parts[i] += times * other.parts[i];
    by_memory[i] += times * other.by_memory[i];
  }
}

CostModel::CostModel(const MachineProfile& profile, int num_threads) : profile_(profile) {
  if (profile.memory_bytes > 0 || num_threads < 1) return;  // a card
  const double times = static_cast<double>(num_threads) / static_cast<double>(profile.threads);
  for (double& rate : profile_.product_flops) rate *= times;
  for (double& rate : profile_.attention_flops) rate *= times;
  for (ProductPoint& point : profile_.points) point.flops_per_second *= times;
  for (double* rate : {&profile_.vector_flops, &profile_.cache_bandwidth, &profile_.memory_bandwidth,
                       &profile_.optimizer_bandwidth})
    *rate *= times;
}

ProductType product_type(const ir::OpTypes& types) {
  if (const ir::Attr* precision = types.attrs.find("precision"); precision != nullptr) {
    const std::string& word = types.attrs.str("precision");
    if (word == "bf16") return ProductType::kBf16;
    if (word == "fp16" || word == "f16") return ProductType::kF16;
    if (word == "tf32") return ProductType::kTf32;
  }
  if (types.inputs.empty()) return ProductType::kF32;
  const ir::DType dtype = types.inputs.front().dtype;
  return dtype == ir::DType::kBf16  ? ProductType::kBf16
         : dtype == ir::DType::kF16 ? ProductType::kF16
                                    : ProductType::kF32;
}

double CostModel::product_rate(ProductType type, double m, double n, double k) const {
  const double half = profile_.half_extent;
  const double saturating =
      profile_.product_flops[static_cast<size_t>(type)] * extent(m, half) * extent(n, half) * extent(k, half);
  double weights = 0, logs = 0;
  for (const ProductPoint& p : profile_.points) {
    if (p.type != type) continue;
    const double dm = std::log2(m / static_cast<double>(p.m)), dn = std::log2(n / static_cast<double>(p.n)),
                 dk = std::log2(k / static_cast<double>(p.k));
    const double distance = dm * dm + dn * dn + dk * dk + 0.01;
    const double weight = 1 / (distance * distance);
    weights += weight;
    logs += weight * std::log(p.flops_per_second);
  }
  return weights > 0 ? std::exp(logs / weights) : saturating;
}

double CostModel::product_seconds(const ir::OpTypes& t, double flops) const {
  const ir::Shape& out = t.outputs.front().shape;
  const auto n = static_cast<double>(out.dim(-1));
  const double m = static_cast<double>(out.num_elements()) / n;
  const double k = std::max(1.0, flops / (2 * m * n));
  return flops / product_rate(product_type(t), m, n, k);
}

CostModel::Time CostModel::time_of(Part part, const ir::OpTypes& t, const ir::Cost& cost) const {
  const bool is_cached = cost.bytes <= profile_.cache_bytes;
  Time time{0, cost.bytes / (is_cached ? profile_.cache_bandwidth : profile_.memory_bandwidth)};
  switch (part) {
    case Part::kProducts:
      time.arithmetic = product_seconds(t, cost.flops);
      break;
    case Part::kAttention:
      time.arithmetic = cost.flops / profile_.attention_flops[static_cast<size_t>(product_type(t))];
      break;
    case Part::kLoss: {
      if (t.inputs.size() < 2 || t.inputs[1].shape.rank() != 2 || t.attrs.find("chunk_tokens") == nullptr) {
        time.arithmetic = cost.flops / profile_.vector_flops;
        break;
      }
      const auto rows = static_cast<double>(t.inputs[0].shape.num_rows());
      const auto hidden = static_cast<double>(t.inputs[0].shape.dim(-1));
      const double classes = static_cast<double>(t.inputs[1].num_elements()) / hidden;
      const double softmax = kSoftmaxFlops * rows * classes;
      const double chunk = std::clamp(static_cast<double>(t.attrs.i64("chunk_tokens")), 1.0, rows);
      time.arithmetic =
          std::max(0.0, cost.flops - softmax) / product_rate(product_type(t), chunk, classes, hidden) +
          softmax / profile_.vector_flops;
      break;
    }
    case Part::kOptimizer:
      time = {cost.flops / profile_.vector_flops, cost.bytes / profile_.optimizer_bandwidth};
      break;
    case Part::kCopies:
      time.memory = cost.bytes / 2 / std::max(1.0, profile_.copy_in_bandwidth);  // one side of the link
      break;
    case Part::kMemory:
      time.arithmetic = cost.flops / profile_.vector_flops;
      break;
  }
  return time;
}

void CostModel::add(const ir::Graph& graph, const ir::Op& op, StepSeconds& seconds) const {
  if (op.def->is_view || op.def->state != ir::StateAccess::kNone) return;
  const Part part = part_of(op);
  const Time time = time_of(part, ir::op_types(graph, op), ir::op_cost(graph, op));
  const double most = std::max(time.arithmetic, time.memory);
  seconds.parts[static_cast<size_t>(part)] += most + profile_.launch_seconds;
  if (time.memory > time.arithmetic) seconds.by_memory[static_cast<size_t>(part)] += most;
}

double CostModel::seconds(const ir::Cost& cost, ProductType type) const {
  return cost.flops / profile_.product_flops[static_cast<size_t>(type)] +
         cost.bytes / profile_.cache_bandwidth;
}

}  // namespace plimsoll::planner
