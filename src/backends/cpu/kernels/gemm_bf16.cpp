// Cuts bf16 products into tasks; gemm_bf16.h has the picture.
#include "backends/cpu/kernels/gemm_bf16.h"

#include "backends/cpu/kernels/isa.h"
#include "base/check.h"

namespace plimsoll::cpu::bf16 {
namespace {

// The shared operand should lie in each second-level cache; but rather beside it than that few of its lines
// let each strip be packed again. Measured on a Xeon with 2 MiB of that cache, where a factor of two either
// way is worth a tenth.
constexpr int64_t kSharedBytes = 3 << 19, kMostSharedBytes = 5 << 19, kSharedLines = 640;
constexpr int64_t kStripBytes = 512 << 10;
constexpr int64_t kMaxStripLines = 128, kGroupLines = 128;
// k that is packed together: what a low C may span in registers and scratch, and else.
constexpr int64_t kMaxRun = 4096 / kStep, kRun = 2048 / kStep;
// Steps over which a panel of A and one of B lie in the first-level cache, 2 KiB each.
constexpr int64_t kCachedSteps = 9;
constexpr int64_t kEnoughTasks = 16;
// Of an operand whose lines lie side by side.
constexpr int64_t kPackedSteps = 4, kPackedLines = 128;

// Cuts `size` into the least number of nearly equal parts, in whole units and of at most `most`.
int64_t even_part(int64_t size, int64_t most, int64_t unit) {
  const int64_t units = div_up(size, unit), parts = div_up(units, std::max<int64_t>(1, most / unit));
  return div_up(units, parts) * unit;
}

int64_t line_bytes(int64_t run_steps) { return run_steps * kStep * 2; }
// Without the segments: with short ones, padded to whole steps, there are more runs.
int64_t most_steps(int64_t k) { return std::min(kMaxRun, div_up(k, kStep)); }

int64_t most_strip_lines(int64_t m, int64_t n) {
  return std::min(kMaxStripLines, round_up(std::max(m, n), kPanel));
}
int64_t strip_bytes(int64_t m, int64_t n, int64_t k) {
  return std::min(kStripBytes, most_strip_lines(m, n) * line_bytes(most_steps(k)));
}

struct Rect {
  int64_t i0, i1, j0, j1;
};

class Gemm {
 public:
  Gemm(const GemmArgs& args, ThreadPool& pool, std::span<std::byte> workspace, const Kernels& kernels)
      : g_(args), pool_(pool), kernels_(kernels), steps_(args.k, args.k_segment), plan_(plan(args)) {
    shared_ = workspace.data();
    own_ = shared_ + shared_bytes(args.m, args.n, args.k);
    own_bytes_ = thread_bytes(args.m, args.n, args.k);
    PLIMSOLL_CHECK(own_ + own_bytes_ * pool.num_threads() <= workspace.data() + workspace.size());
  }

  void run() {
    const int64_t lines = plan_.private_a ? g_.n : g_.m, of_tasks = plan_.private_a ? g_.m : g_.n;
    for (first_ = 0; first_ < steps_.count(); first_ += plan_.run_steps) {
      end_ = std::min(steps_.count(), first_ + plan_.run_steps);
      for (int64_t begin = 0; begin < lines; begin += plan_.shared_lines) {
        const int64_t end = std::min(lines, begin + plan_.shared_lines);
        pack_shared(begin, end);
        pool_.run(div_up(of_tasks, plan_.strip_lines), [&](int64_t index, int thread) {
          const int64_t from = index * plan_.strip_lines, to = std::min(of_tasks, from + plan_.strip_lines);
          plan_.private_a ? task({from, to, begin, end}, thread) : task({begin, end, from, to}, thread);
        });
      }
    }
  }

 private:
  [[nodiscard]] Lines lines(bool of_b) const {
    const ConstMatrix& x = of_b ? g_.b : g_.a;
    const auto* data = static_cast<const std::byte*>(x.data);
    return of_b ? Lines{data, x.row_stride, x.col_stride, x.dtype}
                : Lines{data, x.col_stride, x.row_stride, x.dtype};
  }
  [[nodiscard]] int64_t panel_bytes() const { return (end_ - first_) * kPanelStepBytes; }

  // Lines [begin, end) of the run. Where lines lie side by side, some steps of all of them at a time: rows of
  // memory are far apart, so what there is to read of one is read together.
  void pack(bool of_b, int64_t begin, int64_t end, std::byte* to) const {
    const Lines x = lines(of_b);
    const int64_t part = x.k_stride == 1 ? end_ - first_ : kPackedSteps;
    for (int64_t s = first_; s < end_; s += part)
      for (int64_t line = begin; line < end; line += kPanel)
        pack_panel(x, line, std::min(kPanel, end - line), steps_, s, std::min(end_, s + part), of_b,
                   to + (line - begin) / kPanel * panel_bytes() + (s - first_) * kPanelStepBytes);
  }

  void pack_shared(int64_t begin, int64_t end) {
    const bool of_b = plan_.private_a;
    const int64_t part = lines(of_b).k_stride == 1 ? kPanel : kPackedLines;
    pool_.run(div_up(end - begin, part), [&](int64_t index, int) {
      pack(of_b, begin + index * part, std::min(end, begin + (index + 1) * part),
           shared_ + index * (part / kPanel) * panel_bytes());
    });
  }

  void task(const Rect& r, int thread) const {
    std::byte* strip = own_ + thread * own_bytes_;
    const int64_t begin = plan_.private_a ? r.i0 : r.j0, end = plan_.private_a ? r.i1 : r.j1;
    pack(!plan_.private_a, begin, end, strip);
    auto* sums = reinterpret_cast<float*>(own_ + thread * own_bytes_ + strip_bytes(g_.m, g_.n, g_.k));
    const std::byte* a = plan_.private_a ? strip : shared_;
    const std::byte* b = plan_.private_a ? shared_ : strip;
    kernels_.begin();
    const int64_t down = plan_.private_a ? plan_.strip_lines : kGroupLines,
                  across = plan_.private_a ? kGroupLines : plan_.strip_lines;
    for (int64_t i = r.i0; i < r.i1; i += down)
      for (int64_t j = r.j0; j < r.j1; j += across)
        group({i, std::min(r.i1, i + down), j, std::min(r.j1, j + across)},
              a + (i - r.i0) / kPanel * panel_bytes(), b + (j - r.j0) / kPanel * panel_bytes(), sums);
    kernels_.end();
  }

  // The panels of A and B from `a` and `b` on; their sums from `sums` on, row by row of panels.
  void group(const Rect& r, const std::byte* a, const std::byte* b, float* sums) const {
    const bool from_zero = first_ == 0 && !g_.accumulate;
    const int64_t count = end_ - first_, part = even_part(count, kCachedSteps, 1);
    for (int64_t s = 0; s < count; s += part) {
      const bool first = s == 0, last = s + part >= count;
      Rect before{};  // written while the next one is multiplied
      float* block = sums;
      for (int64_t i = r.i0; i < r.i1; i += kPanel)
        for (int64_t j = r.j0; j < r.j1; j += kPanel, block += kBlockFloats) {
          const Rect here{i, std::min(i + kPanel, r.i1), j, std::min(j + kPanel, r.j1)};
          if (first && !from_zero) load_block(g_, i, j, here.i1 - i, here.j1 - j, block);
          kernels_.multiply({.a = a + (i - r.i0) / kPanel * panel_bytes() + s * kPanelStepBytes,
                             .b = b + (j - r.j0) / kPanel * panel_bytes() + s * kPanelStepBytes,
                             .sums = block,
                             .steps = std::min(part, count - s),
                             .from_zero = from_zero && first,
                             .row_tiles = here.i1 - i > 16 ? 2 : 1,
                             .column_tiles = here.j1 - j > 16 ? 2 : 1});
          if (last) write(before, block - kBlockFloats), before = here;
        }
      if (last) write(before, block - kBlockFloats);
    }
  }

  void write(const Rect& r, const float* sums) const {
    if (r.i1 > r.i0) store_block(g_, r.i0, r.j0, r.i1 - r.i0, r.j1 - r.j0, end_ == steps_.count(), sums);
  }

  const GemmArgs& g_;
  ThreadPool& pool_;
  const Kernels& kernels_;
  Steps steps_;
  Plan plan_;
  int64_t first_ = 0, end_ = 0;
  std::byte* shared_ = nullptr;
  std::byte* own_ = nullptr;
  int64_t own_bytes_ = 0;
};

}  // namespace

const Kernels& current_kernels() { return current_isa() == Isa::kAmx ? kAmxKernels : kAvx512Kernels; }

Plan plan(const GemmArgs& g) {
  const int64_t steps = Steps(g.k, g.k_segment).count(), most = most_steps(g.k);
  Plan p;
  p.private_a = g.m >= g.n;
  p.run_steps = even_part(steps, g.c_dtype == ir::DType::kF32 ? std::min(kRun, most) : most, 1);
  const int64_t shared = std::min(g.m, g.n), own = std::max(g.m, g.n), bytes = line_bytes(p.run_steps);
  p.shared_lines = even_part(
      shared, std::max(kSharedBytes / bytes, std::min(kSharedLines, kMostSharedBytes / bytes)), kPanel);
  p.strip_lines = even_part(
      own, std::clamp<int64_t>(std::min(kStripBytes / bytes, own / kEnoughTasks), kPanel, kMaxStripLines),
      kPanel);
  return p;
}

int64_t shared_bytes(int64_t m, int64_t n, int64_t k) {
  return std::min(kMostSharedBytes, round_up(std::min(m, n), kPanel) * line_bytes(most_steps(k)));
}

int64_t thread_bytes(int64_t m, int64_t n, int64_t k) {
  const int64_t group = std::min(kGroupLines, round_up(std::min(m, n), kPanel));
  return strip_bytes(m, n, k) + most_strip_lines(m, n) * group * static_cast<int64_t>(sizeof(float));
}

void gemm(const GemmArgs& args, ThreadPool& pool, std::span<std::byte> workspace, const Kernels& kernels) {
  Gemm(args, pool, workspace, kernels).run();
}

}  // namespace plimsoll::cpu::bf16
