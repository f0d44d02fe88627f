#include "backends/cuda/kernel.h"
#include "runtime/kernel_table.h"

namespace plimsoll::cuda {

std::span<const Kernel> accumulate_kernels();
std::span<const Kernel> activation_kernels();
std::span<const Kernel> adafactor_kernels();
std::span<const Kernel> adamw_8bit_kernels();
std::span<const Kernel> adamw_fp8_kernels();
std::span<const Kernel> attention_kernels();
std::span<const Kernel> batch_norm_kernels();
std::span<const Kernel> batched_matmul_kernels();
std::span<const Kernel> conv2d_kernels();
std::span<const Kernel> conv_norm_kernels();
std::span<const Kernel> dora_kernels();
std::span<const Kernel> elementwise_kernels();
std::span<const Kernel> embedding_kernels();
std::span<const Kernel> embedding_adapter_kernels();
std::span<const Kernel> fp8_scaling_kernels();
std::span<const Kernel> grad_norm_kernels();
std::span<const Kernel> group_norm_kernels();
std::span<const Kernel> head_loss_kernels();
std::span<const Kernel> kv_cache_kernels();
std::span<const Kernel> label_loss_kernels();
std::span<const Kernel> layer_scale_kernels();
std::span<const Kernel> linear_kernels();
std::span<const Kernel> linear_gradient_kernels();
std::span<const Kernel> loss_kernels();
std::span<const Kernel> muon_kernels();
std::span<const Kernel> norm_kernels();
std::span<const Kernel> normalize_pixels_kernels();
std::span<const Kernel> optimizer_kernels();
std::span<const Kernel> pointwise_kernels();
std::span<const Kernel> pooling_kernels();
std::span<const Kernel> qk_norm_kernels();
std::span<const Kernel> fused_quantize_kernels();
std::span<const Kernel> quantize_operand_kernels();
std::span<const Kernel> random_kernels();
std::span<const Kernel> rank_kernels();
std::span<const Kernel> reduce_axes_kernels();
std::span<const Kernel> rope_kernels();
std::span<const Kernel> row_kernels();
std::span<const Kernel> scaled_matmul_kernels();
std::span<const Kernel> soft_loss_kernels();
std::span<const Kernel> softmax_kernels();
std::span<const Kernel> strided_kernels();
std::span<const Kernel> sum_kernels();

std::span<const Kernel> all_kernels() {
  static const std::vector<Kernel> all = runtime::join_kernels<Kernel>({accumulate_kernels(),
                                                                        activation_kernels(),
                                                                        adafactor_kernels(),
                                                                        adamw_8bit_kernels(),
                                                                        attention_kernels(),
                                                                        batched_matmul_kernels(),
                                                                        conv2d_kernels(),
                                                                        conv_norm_kernels(),
                                                                        dora_kernels(),
                                                                        elementwise_kernels(),
                                                                        embedding_kernels(),
                                                                        embedding_adapter_kernels(),
                                                                        grad_norm_kernels(),
                                                                        head_loss_kernels(),
                                                                        kv_cache_kernels(),
                                                                        label_loss_kernels(),
                                                                        linear_kernels(),
                                                                        linear_gradient_kernels(),
                                                                        loss_kernels(),
                                                                        muon_kernels(),
                                                                        norm_kernels(),
                                                                        optimizer_kernels(),
                                                                        pointwise_kernels(),
                                                                        qk_norm_kernels(),
                                                                        random_kernels(),
                                                                        rank_kernels(),
                                                                        reduce_axes_kernels(),
                                                                        rope_kernels(),
                                                                        row_kernels(),
                                                                        softmax_kernels(),
                                                                        strided_kernels(),
                                                                        sum_kernels(),
                                                                        batch_norm_kernels(),
                                                                        pooling_kernels(),
                                                                        group_norm_kernels(),
                                                                        layer_scale_kernels(),
                                                                        normalize_pixels_kernels(),
                                                                        soft_loss_kernels(),
                                                                        fp8_scaling_kernels(),
                                                                        fused_quantize_kernels(),
                                                                        quantize_operand_kernels(),
                                                                        scaled_matmul_kernels(),
                                                                        adamw_fp8_kernels()});
  return all;
}

const Kernel* find_kernel(std::string_view op) { return runtime::find_kernel(all_kernels(), op); }

}  // namespace plimsoll::cuda
