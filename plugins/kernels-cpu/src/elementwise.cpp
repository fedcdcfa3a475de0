// SPDX-License-Identifier: Apache-2.0
// Sums, bias, activations, dropout, rotary position embedding.
#include <cmath>
#include <cstring>

#include "cpu_kernels.hpp"
#include "triax/rope_scaling.hpp"

namespace triax::kernels_cpu {

DropStream::DropStream(const Drop& drop)
    : drop_(drop),
      samples_(drop.samples.elements()),
      threshold_(drop_threshold(drop.p)),
      scale_(static_cast<float>(1.0 / (1.0 - static_cast<double>(drop.p)))) {}

DropRow DropStream::at(std::int64_t sample, std::int64_t row, std::int64_t column, std::int64_t head) const {
  return {.key_lo = drop_.key.lo,
          .key_hi = drop_.key.hi,
          .site = drop_.site,
          .sample = static_cast<std::uint32_t>(drop_.samples.as<const std::int64_t>()[sample]),
          .element = static_cast<std::uint64_t>((head * drop_.rows + row) * drop_.width + column),
          .threshold = threshold_,
          .scale = scale_};
}

void CpuKernels::do_bias_add(const BiasAdd& args, const OpContext&) {
  const std::int64_t n = args.x.size(-1);
  by_rows(rows_of(args.x), n, [&](std::int64_t r) {
    loops_.add(args.y.as<float>() + r * n, args.x.as<const float>() + r * n, args.bias.as<const float>(), n);
  });
}

void CpuKernels::do_bias_bwd(const BiasBwd& args, const OpContext&) {
  const std::int64_t n = args.dy.size(-1), rows = rows_of(args.dy);
  by_columns(n, [&](std::int64_t column, std::int64_t count) {
    loops_.column_sums(args.dbias.as<float>() + column, args.dy.as<const float>() + column, rows, n, count);
  });
}

void CpuKernels::do_add(const Add& args, const OpContext&) {
  by_elements(args.y.elements(), [&](std::int64_t begin, std::int64_t n) {
    loops_.add(args.y.as<float>() + begin, args.a.as<const float>() + begin, args.b.as<const float>() + begin, n);
  });
}

void CpuKernels::do_dropout(const Dropout& args, const OpContext&) {
  const std::int64_t n = args.x.size(-1), rows = rows_of(args.x);
  const float* x = args.x.as<const float>();
  float* y = args.y.as<float>();
  const DropStream stream(args.drop);
  if (!stream.drops()) {
    if (y != x)
      by_elements(rows * n, [&](std::int64_t begin, std::int64_t count) { std::copy_n(x + begin, count, y + begin); });
    return;
  }
  const bool scores = args.x.rank() == 4;
  const std::int64_t heads = scores ? args.x.size(1) : 1, queries = scores ? args.x.size(2) : 1;
  by_rows(rows, n, [&](std::int64_t r) {
    const DropRow row = scores ? stream.at(r / (heads * queries), args.drop.row0 + r % queries, args.drop.column0,
                                           args.drop.head0 + r / queries % heads)
                               : stream.row(r);
    loops_.dropout(y + r * n, x + r * n, n, row);
  });
}

void CpuKernels::do_bias_dropout_add(const BiasDropoutAdd& args, const OpContext&) {
  const std::int64_t n = args.x.size(-1);
  const float* bias = args.bias.empty() ? nullptr : args.bias.as<const float>();
  const DropStream stream(args.drop);
  by_rows(rows_of(args.x), n, [&](std::int64_t r) {
    const DropRow row = stream.drops() ? stream.row(r) : DropRow{};
    loops_.bias_dropout_add(args.y.as<float>() + r * n, args.x.as<const float>() + r * n, bias,
                            args.residual.as<const float>() + r * n, n, stream.drops() ? &row : nullptr);
  });
}

void CpuKernels::do_act_fwd(const ActFwd& args, const OpContext&) {
  const float* x = args.x.as<const float>();
  float* y = args.y.as<float>();
  if (args.act == Activation::gelu_tanh) {
    return by_elements(args.y.elements(),
                       [&](std::int64_t begin, std::int64_t n) { loops_.gelu(y + begin, x + begin, n); });
  }
  const std::int64_t n = args.y.size(-1);
  by_rows(rows_of(args.y), n, [&](std::int64_t r) { loops_.silu_mul(y + r * n, x + r * 2 * n, x + r * 2 * n + n, n); });
}

void CpuKernels::do_act_bwd(const ActBwd& args, const OpContext&) {
  const float *x = args.x.as<const float>(), *dy = args.dy.as<const float>();
  float* dx = args.dx.as<float>();
  if (args.act == Activation::gelu_tanh) {
    return by_elements(args.x.elements(), [&](std::int64_t begin, std::int64_t n) {
      loops_.gelu_bwd(dx + begin, dy + begin, x + begin, n);
    });
  }
  const std::int64_t n = args.dy.size(-1);
  by_rows(rows_of(args.dy), n, [&](std::int64_t r) {
    const std::int64_t gate = r * 2 * n, up = gate + n;
    loops_.silu_mul_bwd(dx + gate, dx + up, dy + r * n, x + gate, x + up, n);
  });
}

// Angles are in double: far from position 0, their sines need the precision.
void CpuKernels::do_rope(const Rope& args, const OpContext& context) {
  const TensorView &x = args.x, &y = args.y;
  const std::int64_t width = x.size(3), half = width / 2;
  double* frequencies = reinterpret_cast<double*>(context.scratch.data());
  for (std::int64_t i = 0; i < half; ++i) {
    const double power = -2.0 * static_cast<double>(i) / static_cast<double>(width);
    frequencies[i] = scaled_frequency(std::pow(args.base, power), args.scaling);
  }
  pool_->run(x.size(0), [&](std::int64_t s, int thread) {
    float* cosine = reinterpret_cast<float*>(frequencies + half) + thread * width;
    float* sine = cosine + half;
    for (std::int64_t i = 0; i < half; ++i) {
      const double angle = static_cast<double>(args.position0 + s) * frequencies[i];
      cosine[i] = static_cast<float>(std::cos(angle));
      sine[i] = static_cast<float>(args.inverse ? -std::sin(angle) : std::sin(angle));
    }
    for (std::int64_t b = 0; b < x.size(1); ++b) {
      for (std::int64_t a = 0; a < x.size(2); ++a) {
        const float* from = x.as<const float>() + s * x.stride(0) + b * x.stride(1) + a * x.stride(2);
        float* to = y.as<float>() + s * y.stride(0) + b * y.stride(1) + a * y.stride(2);
        loops_.rotate(to, to + half, from, from + half, cosine, sine, half);
      }
    }
  });
}

} // namespace triax::kernels_cpu
