#include "planner/cost/machine_profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "io/file.h"
#include "io/json.h"
#include "io/tree.h"

namespace plimsoll::planner {
namespace {

constexpr std::string_view kTypeNames[kNumProductTypes] = {"f32", "tf32", "bf16", "f16"};
constexpr int64_t kMostBytes = 1 << 18;
constexpr double kMostRate = 1e19;
constexpr size_t kMostPoints = 1024;
/// Fewer threads may do more than all, where they get in each other's way; not much more.
constexpr double kMostShare = 4;
/// Kernels that stand still beside copies are no machine's.
constexpr double kMostKernelSeconds = 64;

/// Applies `visit(key, field)` to every plain field, so that reading and writing cannot differ.
template <typename Profile, typename Visit>
void each_number(Profile& p, Visit&& visit) {
  visit("half_extent", p.half_extent);
  visit("vector_flops", p.vector_flops);
  visit("cache_bytes", p.cache_bytes);
  visit("cache_bandwidth", p.cache_bandwidth);
  visit("memory_bandwidth", p.memory_bandwidth);
  visit("optimizer_bandwidth", p.optimizer_bandwidth);
  visit("launch_seconds", p.launch_seconds);
  visit("copy_in_bandwidth", p.copy_in_bandwidth);
  visit("copy_out_bandwidth", p.copy_out_bandwidth);
  visit("copy_in_beside_kernels", p.copy_in_beside_kernels);
  visit("copy_out_beside_kernels", p.copy_out_beside_kernels);
  visit("copy_kernel_seconds", p.copy_kernel_seconds);
  visit("disk_read_bandwidth", p.disk_read_bandwidth);
  visit("disk_write_bandwidth", p.disk_write_bandwidth);
  visit("disk_read_beside_write", p.disk_read_beside_write);
  visit("disk_write_beside_read", p.disk_write_beside_read);
  visit("disk_read_beside_kernels", p.disk_read_beside_kernels);
  visit("disk_write_beside_kernels", p.disk_write_beside_kernels);
  visit("disk_kernel_seconds", p.disk_kernel_seconds);
  visit("disk_cached_bandwidth", p.disk_cached_bandwidth);
  visit("spread", p.spread);
}
template <typename Profile, typename Visit>
void each_count(Profile& p, Visit&& visit) {
  visit("threads", p.threads);
  visit("memory_bytes", p.memory_bytes);
  visit("context_bytes", p.context_bytes);
  visit("is_busy", p.is_busy);
  visit("measured_at", p.measured_at);
}
template <typename Profile, typename Visit>
void each_text(Profile& p, Visit&& visit) {
  visit("name", p.name);
  visit("source", p.source);
  visit("rates", p.rates);
  visit("instruction_set", p.instruction_set);
  visit("disk", p.disk);
}
template <typename Shares, typename Visit>
void each_share(Shares& s, Visit&& visit) {
  visit("products", s.products);
  visit("attention", s.attention);
  visit("sweeps", s.memory_bound);
  visit("updates", s.updates);
}

Error bad(std::string what) { return {ErrorCode::kBadData, "damaged machine profile: " + std::move(what)}; }

/// Reads members of a map by name and notices what is missing, wrong or left over.
class Reader {
 public:
  explicit Reader(const io::Tree& map) : map_(map) {
    if (map.kind != io::Tree::Kind::kMap) fail("it is no object");
  }

  const io::Tree* member(std::string_view key) {
    ++read_;
    const io::Tree* tree = map_.find(key);
    if (tree == nullptr) fail(fmt::format("{} is missing", key));
    return tree;
  }
  void number(std::string_view key, double& value) {
    const io::Tree* t = member(key);
    if (t == nullptr) return;
    const bool is_number = t->kind == io::Tree::Kind::kNumber || t->kind == io::Tree::Kind::kInteger;
    if (!is_number || !std::isfinite(t->number) || t->number < 0 || t->number > kMostRate)
      return fail(fmt::format("{} is {}", key, t->describe()));
    value = t->number;
  }
  void count(std::string_view key, int64_t& value) {
    const io::Tree* t = member(key);
    if (t == nullptr) return;
    if (t->kind != io::Tree::Kind::kInteger || t->integer < 0 || t->integer > (int64_t{1} << 50))
      return fail(fmt::format("{} is {}", key, t->describe()));
    value = t->integer;
  }
  void text(std::string_view key, std::string& value) {
    const io::Tree* t = member(key);
    if (t == nullptr) return;
    if (t->kind != io::Tree::Kind::kString || t->text.size() > 1000)
      return fail(fmt::format("{} is {}", key, t->describe()));
    value = t->text;
  }
  void by_type(std::string_view key, std::array<double, kNumProductTypes>& values) {
    const io::Tree* t = member(key);
    if (t == nullptr) return;
    Reader reader(*t);
    for (size_t i = 0; i < kNumProductTypes; ++i) reader.number(kTypeNames[i], values[i]);
    if (const Status s = reader.done(); !s) fail(fmt::format("{}: {}", key, s.error().what));
  }
  void fail(std::string why) {
    if (error_.empty()) error_ = std::move(why);
  }
  [[nodiscard]] Status done() {
    if (error_.empty() && read_ != map_.members.size()) fail("it has keys that are not known");
    if (!error_.empty()) return Error{ErrorCode::kBadData, error_};
    return Ok{};
  }

 private:
  const io::Tree& map_;
  size_t read_ = 0;
  std::string error_;
};

const io::Tree* list_of(std::string_view key, Reader& reader) {
  const io::Tree* list = reader.member(key);
  if (list != nullptr && list->kind == io::Tree::Kind::kList && list->items.size() <= kMostPoints)
    return list;
  if (list != nullptr) reader.fail(fmt::format("{} is no list, or too long", key));
  return nullptr;
}

/// Whether `of` had "op" and "type".
bool read_kind(Reader& of, std::string& kind, ProductType& type) {
  std::string word;
  of.text("op", kind);
  of.text("type", word);
  const auto found = parse_product_type(word);
  if (found) type = *found;
  return found && !kind.empty();
}

void read_points(Reader& reader, std::vector<OpPoint>& points) {
  const io::Tree* list = list_of("points", reader);
  if (list == nullptr) return;
  for (const io::Tree& item : list->items) {
    Reader of(item);
    OpPoint point;
    const bool is_known = read_kind(of, point.kind, point.type);
    of.count("m", point.extents[0]);
    of.count("n", point.extents[1]);
    of.count("k", point.extents[2]);
    of.number("rate", point.rate);
    if (!of.done() || !is_known || std::ranges::min(point.extents) < 1 || point.rate <= 0)
      return reader.fail("a point is damaged");
    points.push_back(std::move(point));
  }
}

void read_factors(Reader& reader, std::vector<OpFactor>& factors) {
  const io::Tree* list = list_of("factors", reader);
  if (list == nullptr) return;
  for (const io::Tree& item : list->items) {
    Reader of(item);
    OpFactor factor;
    const bool is_known = read_kind(of, factor.kind, factor.type);
    of.number("factor", factor.factor);
    if (!of.done() || !is_known || factor.factor < kLeastFactor || factor.factor > 1 / kLeastFactor)
      return reader.fail("a factor is damaged");
    factors.push_back(std::move(factor));
  }
}

void read_fewer_threads(Reader& reader, std::vector<ThreadShares>& fewer) {
  const io::Tree* list = list_of("fewer_threads", reader);
  if (list == nullptr) return;
  for (const io::Tree& item : list->items) {
    Reader of(item);
    ThreadShares shares;
    bool in_reason = true;
    of.count("threads", shares.threads);
    each_share(shares, [&](std::string_view key, double& share) {
      of.number(key, share);
      in_reason = in_reason && share > kLeastFactor / 64 && share <= kMostShare;
    });
    const bool rises = shares.threads > (fewer.empty() ? 0 : fewer.back().threads);
    if (!of.done() || !in_reason || !rises) return reader.fail("the rates of fewer threads are damaged");
    fewer.push_back(shares);
  }
}

io::Tree fewer_threads_tree(const std::vector<ThreadShares>& fewer) {
  io::Tree list = io::Tree::list();
  for (const ThreadShares& shares : fewer) {
    io::Tree item = io::Tree::map({{"threads", io::Tree::of(shares.threads)}});
    each_share(shares, [&](std::string_view key, double share) { item.set(key, io::Tree::of(share)); });
    list.items.push_back(std::move(item));
  }
  return list;
}

io::Tree by_type(const std::array<double, kNumProductTypes>& values) {
  io::Tree map = io::Tree::map();
  for (size_t i = 0; i < kNumProductTypes; ++i) map.set(kTypeNames[i], io::Tree::of(values[i]));
  return map;
}

/// What an estimate divides by.
bool is_usable(const MachineProfile& p) {
  const auto is_positive = [](double v) { return v > 0; };
  return p.threads >= 1 && p.threads <= 4096 && p.is_busy <= 1 && p.context_bytes <= p.memory_bytes &&
         std::ranges::all_of(p.product_flops, is_positive) &&
         std::ranges::all_of(p.attention_flops, is_positive) && p.vector_flops > 0 && p.cache_bandwidth > 0 &&
         p.memory_bandwidth > 0 && p.optimizer_bandwidth > 0 && p.launch_seconds < 1 &&
         std::max(p.copy_kernel_seconds, p.disk_kernel_seconds) <= kMostKernelSeconds &&
         (p.fewer_threads.empty() || p.fewer_threads.back().threads < p.threads);
}

}  // namespace

std::string_view name(ProductType type) { return kTypeNames[static_cast<size_t>(type)]; }

std::optional<ProductType> parse_product_type(std::string_view name) {
  const auto* const found = std::ranges::find(kTypeNames, name);
  if (found == std::end(kTypeNames)) return std::nullopt;
  return static_cast<ProductType>(found - std::begin(kTypeNames));
}

int cuda_capability(const MachineProfile& profile) {
  int capability = 0;
  const std::string& set = profile.instruction_set;
  if (set.starts_with("sm_")) std::from_chars(set.data() + 3, set.data() + set.size(), capability);
  return capability;
}

double rates_margin(const MachineProfile& p) {
  constexpr double kMost = 0.015;  // what is given away by it is to stay below what anybody measures
  return p.rates == "measured" ? std::min(p.spread, kMost) : 0;
}

MachineProfile with_link(MachineProfile p, double link) {
  const double before = std::max(p.copy_in_beside_kernels, p.copy_out_beside_kernels);
  const auto bound = [&](double& rate) { rate = is_measured(p) && rate > 0 ? std::min(rate, link) : link; };
  bound(p.copy_in_bandwidth), bound(p.copy_out_bandwidth);
  if (before <= 0) return p;
  bound(p.copy_in_beside_kernels), bound(p.copy_out_beside_kernels);
  // A thread that waits for the link leaves its CPU to the kernels.
  p.copy_kernel_seconds *= std::max(p.copy_in_beside_kernels, p.copy_out_beside_kernels) / before;
  return p;
}

std::string profile_json(const MachineProfile& p) {
  io::Tree tree = io::Tree::map({{"plimsoll_machine_profile", io::Tree::of(kProfileVersion)}});
  const auto set = [&](std::string_view key, const auto& value) { tree.set(key, io::Tree::of(value)); };
  each_text(p, set);
  each_count(p, set);
  tree.set("product_flops", by_type(p.product_flops));
  tree.set("attention_flops", by_type(p.attention_flops));
  each_number(p, set);
  io::Tree points = io::Tree::list();
  for (const OpPoint& point : p.points)
    points.items.push_back(io::Tree::map({{"op", io::Tree::of(point.kind)},
                                          {"type", io::Tree::of(std::string(name(point.type)))},
                                          {"m", io::Tree::of(point.extents[0])},
                                          {"n", io::Tree::of(point.extents[1])},
                                          {"k", io::Tree::of(point.extents[2])},
                                          {"rate", io::Tree::of(point.rate)}}));
  tree.set("fewer_threads", fewer_threads_tree(p.fewer_threads));
  tree.set("points", std::move(points));
  io::Tree factors = io::Tree::list();
  for (const OpFactor& factor : p.factors)
    factors.items.push_back(io::Tree::map({{"op", io::Tree::of(factor.kind)},
                                           {"type", io::Tree::of(std::string(name(factor.type)))},
                                           {"factor", io::Tree::of(factor.factor)}}));
  tree.set("factors", std::move(factors));
  return io::to_json(tree) + "\n";
}

Result<MachineProfile> parse_profile(std::string_view text) {
  PLIMSOLL_ASSIGN(const io::Tree tree, io::parse_json(text, {.max_bytes = kMostBytes, .max_depth = 8}));
  const io::Tree* version = tree.find("plimsoll_machine_profile");
  if (version == nullptr || version->kind != io::Tree::Kind::kInteger) return bad("it has no version");
  if (version->integer != kProfileVersion)
    return Error{ErrorCode::kBadData,
                 fmt::format("a machine profile of version {}, this program reads {}", version->integer,
                             kProfileVersion),
                 "", "run 'plimsoll calibrate' again"};
  MachineProfile p;
  Reader reader(tree);
  reader.member("plimsoll_machine_profile");
  each_text(p, [&](std::string_view key, std::string& value) { reader.text(key, value); });
  each_count(p, [&](std::string_view key, int64_t& value) { reader.count(key, value); });
  reader.by_type("product_flops", p.product_flops);
  reader.by_type("attention_flops", p.attention_flops);
  each_number(p, [&](std::string_view key, double& value) { reader.number(key, value); });
  read_fewer_threads(reader, p.fewer_threads);
  read_points(reader, p.points);
  read_factors(reader, p.factors);
  if (const Status done = reader.done(); !done) return bad(done.error().what);
  constexpr std::string_view kRates[] = {"calibrated", "measured", "uncalibrated", "data sheet"};
  if (std::ranges::find(kRates, p.rates) == std::end(kRates)) return bad("rates is " + p.rates);
  if (!is_usable(p)) return bad("a rate that every plan needs is 0, or out of range");
  return p;
}

Result<MachineProfile> load_profile(const std::string& path) {
  PLIMSOLL_ASSIGN(const std::string text, io::read_small_file(path, kMostBytes));
  auto profile = parse_profile(text);
  if (profile) return profile;
  return Error{profile.error().code, profile.error().what, path, "run 'plimsoll calibrate' again"};
}

}  // namespace plimsoll::planner
