// Cuts bf16 products into tasks; gemm_bf16.h has the picture.
#include "backends/cpu/kernels/gemm/gemm_bf16.h"

#include "backends/cpu/kernels/gemm/gemm_bf16_strips.h"
#include "backends/cpu/kernels/isa.h"
#include "base/check.h"

namespace plimsoll::cpu::bf16 {
namespace {

// The shared operand should lie in each second-level cache; but rather beside it than that few of its lines
// let each strip be packed again. Measured on a Xeon with 2 MiB of that cache, where a factor of two either
// way is worth a tenth.
constexpr int64_t kSharedBytes = 3 << 19, kMostSharedBytes = 5 << 19, kSharedLines = 640;
constexpr int64_t kStripBytes = 1 << 20;
// Of short lines, half as many: more tasks, and the same passes over what is shared.
constexpr int64_t kMaxStripLines = 256, kLongLineBytes = 1 << 10, kGroupLines = 128;
// k that is packed together: what a low or scaled C may span in registers and scratch, and else.
constexpr int64_t kMaxRun = 4096 / kStep, kRun = 2048 / kStep;
// So that none waits long for the last.
constexpr int64_t kTasksOfAThread = 2;
// Of an operand whose lines lie side by side.
constexpr int64_t kPackedSteps = 4;

// Cuts `size` into the least number of nearly equal parts, in whole units and of at most `most`.
int64_t even_part(int64_t size, int64_t most, int64_t unit) {
  const int64_t units = div_up(size, unit), parts = div_up(units, std::max<int64_t>(1, most / unit));
  return div_up(units, parts) * unit;
}

int64_t line_bytes(int64_t run_steps) { return run_steps * kStep * 2; }
// Without the segments: with short ones, padded to whole steps, there are more runs.
int64_t most_steps(int64_t k) { return std::min(kMaxRun, div_up(k, kStep)); }

// Neither has more than half as many lines again.
bool about_the_same(int64_t m, int64_t n) { return 2 * std::max(m, n) <= 3 * std::min(m, n); }

// What scratch is planned for, by the shape alone: never less for more rows or columns, since who plans for
// the largest of several products runs the smaller ones in the same.
int64_t most_shared_lines(int64_t m, int64_t n) { return std::min(std::max(m, n), 3 * std::min(m, n) / 2); }
int64_t most_strip_lines(int64_t m, int64_t n) {
  return std::min(kMaxStripLines, round_up(std::max(m, n), kPanel));
}
int64_t strip_bytes(int64_t m, int64_t n, int64_t k) {
  return std::min(kStripBytes, most_strip_lines(m, n) * line_bytes(most_steps(k)));
}

// Tasks pack rows of A and share B? A strip is of the operand with more lines; of about as many, of that
// whose lines are rows of memory, for a strip of the other is a small part of each row.
bool is_a_private(const GemmArgs& g) {
  const bool a_rows = g.a.col_stride == 1, b_rows = g.b.row_stride == 1;
  return a_rows != b_rows && about_the_same(g.m, g.n) ? a_rows : g.m >= g.n;
}

struct Rect {
  int64_t i0, i1, j0, j1;
};

class Gemm {
 public:
  Gemm(const GemmArgs& args, ThreadPool& pool, std::span<std::byte> workspace, const Kernels& kernels)
      : g_(args),
        pool_(pool),
        kernels_(kernels),
        steps_(args.k, args.k_segment),
        plan_(plan(args, pool.num_threads())),
        past_caches_(args.past_caches && may_pass_caches(args)) {
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
  [[nodiscard]] int64_t panel_bytes() const { return (end_ - first_) * kPanelStepBytes; }

  // Steps [first, last) of lines [begin, end); `to` is where the first of these lines begins. Where lines lie
  // side by side, some steps of all of them at a time: rows of memory are far apart, so what there is to read
  // of one is read together.
  void pack(bool of_b, int64_t begin, int64_t end, int64_t first, int64_t last, std::byte* to) const {
    const Lines x = lines_of(g_, of_b);
    if (x.codes != nullptr)
      return pack_codes(x, begin, end, steps_, first, last, of_b, to + (first - first_) * kPanelStepBytes,
                        panel_bytes());
    const int64_t part = x.k_stride == 1 ? last - first : kPackedSteps;
    for (int64_t s = first; s < last; s += part)
      for (int64_t line = begin; line < end; line += kPanel)
        pack_panel(x, line, std::min(kPanel, end - line), steps_, s, std::min(last, s + part), of_b,
                   to + (line - begin) / kPanel * panel_bytes() + (s - first_) * kPanelStepBytes);
  }

  // Where lines lie side by side a task packs some steps of all of them, so that it reads whole rows of
  // memory.
  void pack_shared(int64_t begin, int64_t end) {
    const bool of_b = plan_.private_a;
    const bool by_steps = lines_of(g_, of_b).k_stride != 1;
    const int64_t size = by_steps ? end_ - first_ : end - begin, part = by_steps ? kPackedSteps : kPanel;
    pool_.run(div_up(size, part), [&](int64_t index, int) {
      const int64_t from = index * part, to = std::min(size, from + part);
      by_steps ? pack(of_b, begin, end, first_ + from, first_ + to, shared_)
               : pack(of_b, begin + from, begin + to, first_, end_, shared_ + from / kPanel * panel_bytes());
    });
  }

  void task(const Rect& r, int thread) const {
    std::byte* strip = own_ + thread * own_bytes_;
    const int64_t begin = plan_.private_a ? r.i0 : r.j0, end = plan_.private_a ? r.i1 : r.j1;
    pack(!plan_.private_a, begin, end, first_, end_, strip);
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
    if (past_caches_) finish_stores();
  }

  // The panels of A and B from `a` and `b` on; their sums from `sums` on, row by row of panels.
  void group(const Rect& r, const std::byte* a, const std::byte* b, float* sums) const {
    const bool from_zero = first_ == 0 && !continues_c(g_);
    const int64_t count = end_ - first_, part = even_part(count, kernels_.cached_steps, 1);
    const int64_t row_floats = div_up(r.j1 - r.j0, kPanel) * kBlockFloats;
    // Sums that are complete at once stay in the first-level cache: one row of panels follows the other
    // there.
    const int64_t row_step = part >= count ? 0 : row_floats;
    for (int64_t s = 0; s < count; s += part) {
      float* row = sums;
      for (int64_t i = r.i0; i < r.i1; i += kPanel, row += row_step) {
        const Part here{i, r.j0, std::min(kPanel, r.i1 - i), r.j1 - r.j0};
        if (s == 0 && !from_zero) load_blocks(g_, here, row);
        float* block = row;
        for (int64_t j = r.j0; j < r.j1; j += kPanel, block += kBlockFloats)
          kernels_.multiply({.a = a + (i - r.i0) / kPanel * panel_bytes() + s * kPanelStepBytes,
                             .b = b + (j - r.j0) / kPanel * panel_bytes() + s * kPanelStepBytes,
                             .sums = block,
                             .steps = std::min(part, count - s),
                             .from_zero = from_zero && s == 0,
                             .row_tiles = here.rows > 16 ? 2 : 1,
                             .column_tiles = r.j1 - j > 16 ? 2 : 1});
        if (s + part >= count) store_blocks(g_, here, end_ == steps_.count(), past_caches_, row);
      }
    }
  }

  const GemmArgs& g_;
  ThreadPool& pool_;
  const Kernels& kernels_;
  Steps steps_;
  Plan plan_;
  bool past_caches_;
  int64_t first_ = 0, end_ = 0;
  std::byte* shared_ = nullptr;
  std::byte* own_ = nullptr;
  int64_t own_bytes_ = 0;
};

}  // namespace

const Kernels& current_kernels() { return current_isa() == Isa::kAmx ? kAmxKernels : kAvx512Kernels; }

int64_t run_steps(const GemmArgs& g) {
  const int64_t most = most_steps(g.k);
  return even_part(Steps(g.k, g.k_segment).count(),
                   g.c_dtype == ir::DType::kF32 && g.scale == nullptr ? std::min(kRun, most) : most, 1);
}

bool may_pass_caches(const GemmArgs& g) {
  return in_one_run(g) && g.c_row_stride * ir::bits(g.c_dtype) / 8 % 64 == 0 &&
         reinterpret_cast<uintptr_t>(g.c) % 64 == 0;
}

bool in_one_run(const GemmArgs& g) { return run_steps(g) >= Steps(g.k, g.k_segment).count(); }

Plan plan(const GemmArgs& g, int num_threads) {
  Plan p;
  p.private_a = is_a_private(g);
  p.run_steps = run_steps(g);
  const int64_t shared = p.private_a ? g.n : g.m, own = p.private_a ? g.m : g.n,
                bytes = line_bytes(p.run_steps);
  p.shared_lines = even_part(
      shared, std::max(kSharedBytes / bytes, std::min(kSharedLines, kMostSharedBytes / bytes)), kPanel);
  const int64_t most_lines = bytes < kLongLineBytes ? kMaxStripLines / 2 : kMaxStripLines;
  const int64_t most_strip = std::clamp(kStripBytes / bytes, kPanel, most_lines) / kPanel * kPanel;
  const int64_t tasks = std::max(div_up(own, most_strip), kTasksOfAThread * num_threads);
  p.strip_lines = round_up(div_up(own, round_up(tasks, num_threads)), kPanel);
  return p;
}

int64_t shared_bytes(int64_t m, int64_t n, int64_t k) {
  return std::min(kMostSharedBytes, round_up(most_shared_lines(m, n), kPanel) * line_bytes(most_steps(k)));
}

int64_t thread_bytes(int64_t m, int64_t n, int64_t k) {
  const int64_t group = std::min(kGroupLines, round_up(most_shared_lines(m, n), kPanel));
  return strip_bytes(m, n, k) + most_strip_lines(m, n) * group * static_cast<int64_t>(sizeof(float));
}

void gemm(const GemmArgs& args, ThreadPool& pool, std::span<std::byte> workspace, const Kernels& kernels) {
  if (kernels.multiply_into != nullptr) return multiply_strips(args, pool, workspace, kernels);
  Gemm(args, pool, workspace, kernels).run();
}

}  // namespace plimsoll::cpu::bf16
