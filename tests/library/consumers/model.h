#pragma once

#include <plimsoll/plimsoll.h>

struct Mlp : plimsoll::Module {
  plimsoll::RMSNorm norm{*this, "norm", 64, {.eps = 1e-5}};
  plimsoll::Linear up{*this, "up", 64, 160, {.bias = false}}, down{*this, "down", 160, 64};
  plimsoll::Value forward(plimsoll::Value x);
};

struct Net : plimsoll::Module {
  plimsoll::Embedding tokens{*this, "tokens", 256, 64};
  plimsoll::ModuleList<Mlp> layers{*this, "layers", 5};
  plimsoll::LayerNorm norm{*this, "norm", 64};
  plimsoll::Linear head{*this, "head", 64, 256, {.bias = false}};
  plimsoll::Value forward(plimsoll::Value ids);
};
