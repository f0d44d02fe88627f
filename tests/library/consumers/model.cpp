#include "model.h"

plimsoll::Value Mlp::forward(plimsoll::Value x) { return x + down(plimsoll::silu(up(norm(x)))); }

plimsoll::Value Net::forward(plimsoll::Value ids) {
  plimsoll::Value x = tokens(ids);
  for (Mlp& layer : layers) x = layer.forward(x);
  return head(norm(x));
}
