#include "backends/cpu/kernel.h"
#include "base/check.h"
#include "runtime/kernel_table.h"

namespace plimsoll::cpu {

std::span<const Kernel> adafactor_kernels();
std::span<const Kernel> adamw_8bit_kernels();
std::span<const Kernel> adamw_fp8_kernels();
std::span<const Kernel> attention_kernels();
std::span<const Kernel> accumulate_kernels();
std::span<const Kernel> activation_kernels();
std::span<const Kernel> cast_kernels();
std::span<const Kernel> conv2d_input_kernels();
std::span<const Kernel> conv2d_kernels();
std::span<const Kernel> conv_norm_kernels();
std::span<const Kernel> cross_entropy_kernels();
std::span<const Kernel> dequantize_operand_kernels();
std::span<const Kernel> dora_kernels();
std::span<const Kernel> elementwise_kernels();
std::span<const Kernel> embedding_adapters_kernels();
std::span<const Kernel> embedding_kernels();
std::span<const Kernel> fp8_scaling_kernels();
std::span<const Kernel> gather_rows_kernels();
std::span<const Kernel> grad_norm_kernels();
std::span<const Kernel> group_norm_kernels();
std::span<const Kernel> head_loss_kernels();
std::span<const Kernel> kv_cache_kernels();
std::span<const Kernel> label_loss_kernels();
std::span<const Kernel> layer_scale_kernels();
std::span<const Kernel> linear_few_kernels();
std::span<const Kernel> linear_kernels();
std::span<const Kernel> loss_scale_kernels();
std::span<const Kernel> muon_kernels();
std::span<const Kernel> norm_kernels();
std::span<const Kernel> optimizer_kernels();
std::span<const Kernel> positions_kernels();
std::span<const Kernel> qk_norm_kernels();
std::span<const Kernel> fused_quantize_kernels();
std::span<const Kernel> quantize_operand_kernels();
std::span<const Kernel> random_kernels();
std::span<const Kernel> reduce_kernels();
std::span<const Kernel> rope_kernels();
std::span<const Kernel> structure_kernels();
std::span<const Kernel> batch_norm_kernels();
std::span<const Kernel> batched_matmul_kernels();
std::span<const Kernel> normalize_pixels_kernels();
std::span<const Kernel> pointwise_kernels();
std::span<const Kernel> pooling_kernels();
std::span<const Kernel> reduce_axes_kernels();
std::span<const Kernel> scaled_matmul_kernels();
std::span<const Kernel> soft_cross_entropy_kernels();
std::span<const Kernel> softmax_kernels();
std::span<const Kernel> strided_kernels();
std::span<const Kernel> rank_kernels();

std::span<const Kernel> all_kernels() {
  static const std::vector<Kernel> all = runtime::join_kernels<Kernel>({accumulate_kernels(),
                                                                        activation_kernels(),
                                                                        adafactor_kernels(),
                                                                        adamw_8bit_kernels(),
                                                                        adamw_fp8_kernels(),
                                                                        attention_kernels(),
                                                                        cast_kernels(),
                                                                        conv2d_input_kernels(),
                                                                        conv2d_kernels(),
                                                                        conv_norm_kernels(),
                                                                        cross_entropy_kernels(),
                                                                        dequantize_operand_kernels(),
                                                                        fused_quantize_kernels(),
                                                                        dora_kernels(),
                                                                        elementwise_kernels(),
                                                                        embedding_adapters_kernels(),
                                                                        embedding_kernels(),
                                                                        gather_rows_kernels(),
                                                                        grad_norm_kernels(),
                                                                        muon_kernels(),
                                                                        head_loss_kernels(),
                                                                        kv_cache_kernels(),
                                                                        label_loss_kernels(),
                                                                        group_norm_kernels(),
                                                                        layer_scale_kernels(),
                                                                        linear_few_kernels(),
                                                                        linear_kernels(),
                                                                        loss_scale_kernels(),
                                                                        norm_kernels(),
                                                                        optimizer_kernels(),
                                                                        positions_kernels(),
                                                                        qk_norm_kernels(),
                                                                        random_kernels(),
                                                                        rank_kernels(),
                                                                        reduce_kernels(),
                                                                        rope_kernels(),
                                                                        structure_kernels(),
                                                                        batched_matmul_kernels(),
                                                                        pointwise_kernels(),
                                                                        reduce_axes_kernels(),
                                                                        batch_norm_kernels(),
                                                                        normalize_pixels_kernels(),
                                                                        pooling_kernels(),
                                                                        soft_cross_entropy_kernels(),
                                                                        softmax_kernels(),
                                                                        strided_kernels(),
                                                                        quantize_operand_kernels(),
                                                                        scaled_matmul_kernels(),
                                                                        fp8_scaling_kernels()});
  return all;
}

const Kernel* find_kernel(std::string_view op) { return runtime::find_kernel(all_kernels(), op); }

const Kernel& kernel_of(const ir::Op& op) {
  const Kernel* kernel = find_kernel(op.def->name);
  PLIMSOLL_CHECK(kernel != nullptr, "no CPU kernel for " + std::string(op.def->name));
  return *kernel;
}

}  // namespace plimsoll::cpu
