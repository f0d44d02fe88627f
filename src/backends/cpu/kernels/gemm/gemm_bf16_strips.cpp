// One operand is packed a strip at a time, each by the task that multiplies it: B where A can be read in
// place, else the operand with more lines. The other one passes by, panel after panel: A's rows as they lie
// in memory, or what was packed once for all.
//
//                    strip of B, packed (second-level cache)
//                    +------+------+------+
//     32 rows of A   |block |block |block |   for each 32 rows of A: for each panel of the strip: a block,
//     (first level)  +------+------+------+   from registers to C
//                    |      |      |      |
//
// Measured on an EPYC of Zen 5 with 1 MiB of second-level cache, for products of 300 to 3000 lines each way:
// a core's vdpbf16ps alone reach 500 GFLOP/s, the kernels 480 whether rows of A are packed or not and however
// long k is; so what is left to save is packing (5 to 7 cycles for a line of 64 bytes) and detours of C. The
// strip's length does not matter from one panel to eight. Fetching ahead what the next task packs: 512
// tokens, 64 at a time, through a head of 151936 x 896 and back, from 606 to 400 ms where it lies as fp32,
// 422 to 358 as bf16.
#include "backends/cpu/kernels/gemm/gemm_bf16_strips.h"

#include <climits>

#include "base/check.h"

namespace plimsoll::cpu::bf16 {
namespace {

using ir::DType;

constexpr int64_t kStripPanels = 8, kPartBytes = 512 << 10;
// So that threads end at about the same time, even if one is held up.
constexpr int64_t kPartsOfAThread = 4;
// What a task packs of a shared operand whose lines lie side by side.
constexpr int64_t kPartSteps = 4;

class StripGemm {
 public:
  StripGemm(const GemmArgs& args, ThreadPool& pool, std::span<std::byte> workspace, const Kernels& kernels)
      : g_(args),
        pool_(pool),
        kernels_(kernels),
        a_(lines_of(args, false)),
        b_(lines_of(args, true)),
        steps_(args.k, args.k_segment),
        plan_(strip_plan(args, pool.num_threads())),
        past_caches_(args.past_caches && may_pass_caches(args)) {
    a_.fetch_ahead = b_.fetch_ahead = true;
    shared_ = workspace.data();
    own_ = shared_ + shared_bytes(args.m, args.n, args.k);
    own_bytes_ = thread_bytes(args.m, args.n, args.k);
    PLIMSOLL_CHECK(own_ + own_bytes_ * pool.num_threads() <= workspace.data() + workspace.size());
  }

  void run() {
    const int64_t of_shared = plan_.private_a ? g_.n : g_.m, of_strips = plan_.private_a ? g_.m : g_.n;
    for (first_ = 0; first_ < steps_.count(); first_ += plan_.run_steps) {
      end_ = std::min(steps_.count(), first_ + plan_.run_steps);
      for (int64_t begin = 0; begin < of_shared; begin += plan_.shared_lines) {
        const Range shared{begin, std::min(of_shared, begin + plan_.shared_lines)};
        if (!plan_.a_in_place) pack_shared(shared);
        pool_.run(div_up(of_strips, plan_.strip_lines), [&](int64_t index, int thread) {
          const int64_t from = index * plan_.strip_lines;
          task(shared, {from, std::min(of_strips, from + plan_.strip_lines)}, own_ + thread * own_bytes_);
        });
      }
    }
  }

 private:
  struct Range {
    int64_t begin, end;
    [[nodiscard]] Range panel(int64_t at) const { return {at, std::min(end, at + kPanel)}; }
    [[nodiscard]] int64_t size() const { return end - begin; }
  };

  [[nodiscard]] int64_t panel_bytes() const { return (end_ - first_) * kPanelStepBytes; }

  // All steps of these lines.
  void pack(bool of_b, const Range& r, std::byte* to) const {
    const Lines& x = of_b ? b_ : a_;
    if (x.side_by_side()) return pack_rows(x, r.begin, r.end, steps_, first_, end_, to, panel_bytes());
    for (int64_t at = r.begin; at < r.end; at += kPanel, to += panel_bytes())
      pack_panel(x, at, r.panel(at).size(), steps_, first_, end_, of_b, to);
  }

  void pack_shared(const Range& r) {
    const bool of_b = plan_.private_a;
    const Lines& x = of_b ? b_ : a_;
    if (x.side_by_side())
      pool_.run(div_up(end_ - first_, kPartSteps), [&](int64_t index, int) {
        const int64_t done = index * kPartSteps, s = first_ + done;
        pack_rows(x, r.begin, r.end, steps_, s, std::min(end_, s + kPartSteps),
                  shared_ + done * kPanelStepBytes, panel_bytes());
      });
    else
      pool_.run(div_up(r.size(), kPanel), [&](int64_t index, int) {
        pack(of_b, r.panel(r.begin + index * kPanel), shared_ + index * panel_bytes());
      });
  }

  void task(const Range& shared, const Range& own, std::byte* scratch) const {
    auto* sums = reinterpret_cast<float*>(scratch);
    std::byte* const strip = scratch + kBlockFloats * sizeof(float);
    pack(!plan_.private_a, own, strip);
    GemmAhead ahead = after(own);
    const std::byte* passing = shared_;
    for (int64_t s = shared.begin; s < shared.end; s += kPanel, passing += panel_bytes()) {
      const std::byte* staying = strip;
      for (int64_t o = own.begin; o < own.end; o += kPanel, staying += panel_bytes())
        if (plan_.private_a)
          multiply(own.panel(o), staying, shared.panel(s), passing, sums, ahead);
        else
          multiply(shared.panel(s), passing, own.panel(o), staying, sums, ahead);
    }
    if (past_caches_) finish_stores();
  }

  // What a task packs that follows this one, in the next run of k where there is none.
  [[nodiscard]] GemmAhead after(const Range& own) const {
    const Lines& x = plan_.private_a ? a_ : b_;
    const int64_t lines = plan_.private_a ? g_.m : g_.n, count = ceil_div(lines, plan_.strip_lines),
                  index = own.begin / plan_.strip_lines + pool_.num_threads(), past = index / count;
    const int64_t first = first_ + past * plan_.run_steps,
                  end = std::min(steps_.count(), first + plan_.run_steps);
    if (first >= end || x.patches != nullptr || x.codes != nullptr) return {};
    const int64_t line = index % count * plan_.strip_lines, k = steps_[first].begin,
                  size = ir::bits(x.dtype) / 8;
    return fetch_ahead_of(x.data + (k * x.k_stride + line * x.line_stride) * size, x.k_stride, x.line_stride,
                          steps_[end - 1].begin + steps_[end - 1].size - k,
                          std::min(plan_.strip_lines, lines - line), size);
  }

  void multiply(const Range& rows, const std::byte* a, const Range& columns, const std::byte* b, float* sums,
                GemmAhead& ahead) const {
    const bool from_zero = first_ == 0 && !continues_c(g_), last = end_ == steps_.count();
    Block block{.a = a,
                .b = b,
                .sums = sums,
                .steps = end_ - first_,
                .from_zero = from_zero,
                .row_tiles = rows.size() > 16 ? 2 : 1,
                .column_tiles = columns.size() > 16 ? 2 : 1,
                .a_in_pairs = a_.side_by_side()};
    block.ahead = ahead.take(block.steps * kAheadOfAStep * block.row_tiles / 2, b);
    if (plan_.a_in_place) {
      block.a = a_.data + (rows.begin * a_.line_stride + first_ * kStep) * 2;
      block.a_row_bytes = a_.line_stride * 2;
      block.a_step_bytes = kStep * 2;
    }
    if (rows.size() == kPanel && columns.size() == kPanel && g_.scale == nullptr)
      return kernels_.multiply_into(block, place(rows.begin, columns.begin, !from_zero, last));
    const Part part{rows.begin, columns.begin, rows.size(), columns.size()};
    if (!from_zero) load_blocks(g_, part, sums);
    kernels_.multiply(block);
    store_blocks(g_, part, last, past_caches_, sums);
  }

  [[nodiscard]] Place place(int64_t i, int64_t j, bool is_added_to, bool last) const {
    const int64_t size = ir::bits(g_.c_dtype) / 8, bias_size = ir::bits(g_.bias_dtype) / 8;
    const auto* bias = static_cast<const std::byte*>(g_.bias);
    return {.data = static_cast<std::byte*>(g_.c) + (i * g_.c_row_stride + j) * size,
            .row_bytes = g_.c_row_stride * size,
            .dtype = g_.c_dtype,
            .bias = last && bias != nullptr ? bias + j * bias_size : nullptr,
            .bias_dtype = g_.bias_dtype,
            .is_added_to = is_added_to,
            .past_caches = past_caches_};
  }

  const GemmArgs& g_;
  ThreadPool& pool_;
  const Kernels& kernels_;
  Lines a_, b_;
  Steps steps_;
  StripPlan plan_;
  bool past_caches_;
  int64_t first_ = 0, end_ = 0;
  std::byte* shared_ = nullptr;
  std::byte* own_ = nullptr;
  int64_t own_bytes_ = 0;
};

// Whole panels of rows whose k lie side by side, in steps without gaps.
bool can_stay(const GemmArgs& g) {
  return g.a.patches == nullptr && g.a.codes == nullptr && g.a.dtype == DType::kBf16 && g.a.col_stride == 1 &&
         g.m % kPanel == 0 && g.k % kStep == 0 &&
         (g.k_segment <= 0 || g.k_segment >= g.k || g.k_segment % kStep == 0);
}

// The longest strip of those with which threads of equal speed end first.
int64_t strip_panels(int64_t panels, int64_t most, int num_threads) {
  int64_t best = 1, least = INT64_MAX;
  for (int64_t p = 1; p <= most; ++p) {
    const int64_t time = div_up(div_up(panels, p), num_threads) * p;
    if (time <= least) least = time, best = p;
  }
  return best;
}

}  // namespace

StripPlan strip_plan(const GemmArgs& g, int num_threads) {
  StripPlan p;
  p.a_in_place = can_stay(g);
  p.private_a = !p.a_in_place && g.m >= g.n;
  p.run_steps = run_steps(g);
  const int64_t shared = div_up(p.private_a ? g.n : g.m, kPanel),
                own = div_up(p.private_a ? g.m : g.n, kPanel), bytes = p.run_steps * kPanelStepBytes;
  const int64_t room = p.a_in_place ? shared : shared_bytes(g.m, g.n, g.k) / bytes;
  p.shared_lines = div_up(shared, div_up(shared, room)) * kPanel;
  const int64_t most = std::min({kStripPanels, kPartBytes / bytes, own / (kPartsOfAThread * num_threads)});
  p.strip_lines = strip_panels(own, std::max<int64_t>(1, most), num_threads) * kPanel;
  return p;
}

void multiply_strips(const GemmArgs& args, ThreadPool& pool, std::span<std::byte> workspace,
                     const Kernels& kernels) {
  StripGemm(args, pool, workspace, kernels).run();
}

}  // namespace plimsoll::cpu::bf16
