// SPDX-License-Identifier: Apache-2.0
// Speed of kernels-cpu at the shapes of a small GPT: products compared with plain oneDNN, attention, rotary
// positions, norms, a full step.
//
// bench_kernels [--benchmark_filter=...]; every operation uses as many threads as there are cores.
// Compare ratios within one run: other programs on the machine change absolute numbers.
#include <benchmark/benchmark.h>
#include <dnnl.h>
#include <omp.h>

#include <cmath>

#include "gpt_step.hpp"
#include "kernel_bench.hpp"
#include "timed_kernels.hpp"

namespace triax::bench {
namespace {

/// kernels-cpu, in fp32.
class Set : public KernelBench {
 public:
  explicit Set(int threads = cores()) : KernelBench("kernels-cpu", threads) {}
};

void report_flops(benchmark::State& state, double flops) {
  state.counters["GFLOP/s"] =
      benchmark::Counter(flops * 1e-9 * static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
}

// --- products: m, n, k, transpose a, transpose b

struct Views {
  TensorView d, a, b;
};
Views product(Set& set, const benchmark::State& state) {
  const std::int64_t m = state.range(0), n = state.range(1), k = state.range(2);
  return {set.tensor({m, n}), set.tensor(state.range(3) ? Shape{k, m} : Shape{m, k}),
          set.tensor(state.range(4) ? Shape{n, k} : Shape{k, n})};
}
double product_flops(const benchmark::State& state) {
  return 2.0 * static_cast<double>(state.range(0) * state.range(1) * state.range(2));
}

void gemm_kernels_cpu(benchmark::State& state) {
  Set set;
  const auto [d, a, b] = product(set, state);
  const Gemm args{.d = d, .a = a, .b = b, .transpose_a = state.range(3) != 0, .transpose_b = state.range(4) != 0};
  for (auto _ : state) set.run(args);
  report_flops(state, product_flops(state));
}

void gemm_onednn(benchmark::State& state) {
  Set set;
  const auto [d, a, b] = product(set, state);
  omp_set_num_threads(cores());
  for (auto _ : state) {
    dnnl_sgemm(state.range(3) ? 'T' : 'N', state.range(4) ? 'T' : 'N', state.range(0), state.range(1), state.range(2),
               1, a.as<float>(), a.stride(0), b.as<float>(), b.stride(0), 0, d.as<float>(), d.stride(0));
  }
  report_flops(state, product_flops(state));
}

void model_shapes(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"m", "n", "k", "ta", "tb"})->UseRealTime();
  for (const std::int64_t tokens : {256, 1024}) {
    bench->Args({tokens, 1152, 384, 0, 1}); // qkv
    bench->Args({tokens, 384, 384, 0, 1});  // projection
    bench->Args({tokens, 1536, 384, 0, 1}); // up
    bench->Args({tokens, 384, 1536, 0, 1}); // down
    bench->Args({tokens, 257, 384, 0, 1});  // logits
    bench->Args({tokens, 384, 1536, 0, 0}); // input gradient of up
    bench->Args({1536, 384, tokens, 1, 0}); // weight gradient of up
    bench->Args({384, 1536, tokens, 1, 0}); // weight gradient of down
  }
}
BENCHMARK(gemm_kernels_cpu)->Apply(model_shapes);
BENCHMARK(gemm_onednn)->Apply(model_shapes);

// --- attention: sequence, samples, heads, dropout in percent

void attention(benchmark::State& state, bool backward) {
  Set set;
  const std::int64_t s = state.range(0), b = state.range(1), a = state.range(2), d = 64;
  const auto heads = [&] {
    const TensorView qkv = set.tensor({s, b, a, 3 * d});
    return std::array{qkv.slice(3, 0, d), qkv.slice(3, d, 2 * d), qkv.slice(3, 2 * d, 3 * d)};
  };
  const auto x = heads(), dx = heads();
  const TensorView o = set.tensor({s, b, a, d}), dout = set.tensor({s, b, a, d}), lse = set.tensor({b, a, s});
  std::vector<std::int64_t> samples(static_cast<std::size_t>(b), 1);
  Mask mask;
  mask.kind = Mask::Kind::causal;
  Drop drop;
  drop.p = static_cast<float>(state.range(3)) / 100;
  drop.samples = {samples.data(), DType::i64, {b}};
  drop.rows = s;
  drop.width = s;
  const AttentionFwd forward{o, lse, x[0], x[1], x[2], 0.125, mask, drop};
  set.run(forward);
  for (auto _ : state) {
    if (backward) {
      set.run(AttentionBwd{dx[0], dx[1], dx[2], dout, x[0], x[1], x[2], o, lse, 0.125, mask, drop});
    } else {
      set.run(forward);
    }
  }
  // Counts the whole matrix, although the causal half is not computed.
  report_flops(state, (backward ? 10.0 : 4.0) * static_cast<double>(s * s * d * b * a));
}
void attention_sizes(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"s", "b", "a", "drop"})->UseRealTime();
  for (const std::int64_t drop : {0, 10})
    bench->Args({256, 1, 6, drop})->Args({256, 4, 6, drop})->Args({1024, 1, 12, drop});
}
BENCHMARK_CAPTURE(attention, forward, false)->Apply(attention_sizes);
BENCHMARK_CAPTURE(attention, backward, true)->Apply(attention_sizes);

// --- rotary positions

/// The passes before the attention of a Llama, of as many key heads as query heads.
void rope(benchmark::State& state) {
  Set set;
  const std::int64_t s = state.range(0), b = state.range(1), a = state.range(2), d = 64;
  const TensorView qkv = set.tensor({s, b, a, 3 * d}), q = set.tensor({s, b, a, d}), k = set.tensor({s, b, a, d});
  for (auto _ : state) {
    set.run(Rope{.y = q, .x = qkv.slice(3, 0, d)});
    set.run(Rope{.y = k, .x = qkv.slice(3, d, 2 * d)});
  }
  state.SetBytesProcessed(state.iterations() * 4 * s * b * a * d * 4);
}
BENCHMARK(rope)->ArgNames({"s", "b", "a"})->UseRealTime()->Args({256, 1, 6})->Args({256, 4, 6})->Args({1024, 1, 12});

// --- loops: rows, columns

void report_bytes(benchmark::State& state, std::int64_t views) {
  state.SetBytesProcessed(state.iterations() * views * state.range(0) * state.range(1) * 4);
}
void loop_sizes(benchmark::internal::Benchmark* bench) {
  bench->UseRealTime()->Args({256, 384})->Args({2048, 384})->Args({2048, 1536});
}

void layer_norm_forward(benchmark::State& state) {
  Set set;
  const std::int64_t rows = state.range(0), n = state.range(1);
  const TensorView x = set.tensor({rows, n}), y = set.tensor({rows, n}), w = set.tensor({n}), b = set.tensor({n});
  const TensorView mean = set.tensor({rows}), rstd = set.tensor({rows});
  for (auto _ : state) set.run(NormFwd{NormKind::layer, y, x, w, b, mean, rstd, 1e-5});
  report_bytes(state, 2);
}
BENCHMARK(layer_norm_forward)->Apply(loop_sizes);

void layer_norm_backward(benchmark::State& state) {
  Set set;
  const std::int64_t rows = state.range(0), n = state.range(1);
  const TensorView x = set.tensor({rows, n}), dy = set.tensor({rows, n}), dx = set.tensor({rows, n});
  const TensorView w = set.tensor({n}), dw = set.tensor({n}), db = set.tensor({n});
  const TensorView mean = set.tensor({rows}), rstd = set.tensor({rows});
  for (auto _ : state) {
    set.run(NormBwdInput{NormKind::layer, dx, dy, x, w, mean, rstd, {}});
    set.run(NormBwdWeight{NormKind::layer, dw, db, dy, x, mean, rstd});
  }
  report_bytes(state, 5);
}
BENCHMARK(layer_norm_backward)->Apply(loop_sizes);

void gelu_forward(benchmark::State& state) {
  Set set;
  const TensorView x = set.tensor({state.range(0), state.range(1)}), y = set.tensor({state.range(0), state.range(1)});
  for (auto _ : state) set.run(ActFwd{Activation::gelu_tanh, y, x});
  report_bytes(state, 2);
}
BENCHMARK(gelu_forward)->Apply(loop_sizes);

void bias_dropout_add(benchmark::State& state) {
  Set set;
  const std::int64_t rows = state.range(0), n = state.range(1);
  const TensorView x = set.tensor({rows, n}), r = set.tensor({rows, n}), y = set.tensor({rows, n}), b = set.tensor({n});
  std::int64_t sample = 1;
  Drop drop;
  drop.p = 0.1f;
  drop.samples = {&sample, DType::i64, {1}};
  drop.rows = rows;
  drop.width = n;
  for (auto _ : state) set.run(BiasDropoutAdd{y, x, b, r, drop});
  report_bytes(state, 3);
}
BENCHMARK(bias_dropout_add)->Apply(loop_sizes);

void adamw(benchmark::State& state) {
  Set set;
  const std::int64_t n = state.range(0);
  const TensorView p = set.tensor({n}), g = set.tensor({n}), m = set.tensor({n}), v = set.tensor({n});
  const StepScalars scalars{.lr = 1e-6f, .step = 10};
  for (auto _ : state) set.run(AdamW{p, g, m, v, {}, 0.9, 0.95, 1e-8, 0.1, &scalars});
  state.SetBytesProcessed(state.iterations() * 7 * n * 4);
}
BENCHMARK(adamw)->UseRealTime()->Arg(384 * 1536)->Arg(10'000'000);

// --- a whole model, forward and backward: samples of a microbatch, dropout in percent

void gpt_10m(benchmark::State& state) {
  Set set;
  GptSizes sizes;
  sizes.micro = state.range(0);
  sizes.dropout = static_cast<double>(state.range(1)) / 100;
  GptStep step(set.kernels(), set.device(), sizes);
  double loss = 0;
  for (auto _ : state) loss = step.run();
  if (!std::isfinite(loss)) state.SkipWithError("the loss is not finite");
  const double tokens = static_cast<double>(sizes.sequence * sizes.micro * state.iterations());
  state.counters["tokens/s"] = benchmark::Counter(tokens, benchmark::Counter::kIsRate);
  report_flops(state, step.flops());
}
BENCHMARK(gpt_10m)
    ->MeasureProcessCPUTime()
    ->ArgNames({"micro", "drop"})
    ->UseRealTime()
    ->Args({1, 0})
    ->Args({1, 10})
    ->Args({4, 10})
    ->Args({8, 10});

// One thread, compared with the peak of single-threaded dnnl_sgemm in the same run. Reports each operation's share of
// the time and its rate: GFLOP/s of products, GB/s of everything else.
void gpt_768(benchmark::State& state) {
  Set set(1);
  TimedKernels timed(set.kernels());
  GptSizes sizes{.layers = 4, .hidden = 768, .heads = 12, .sequence = 512, .vocab = 8192, .micro = 4};
  sizes.dropout = static_cast<double>(state.range(0)) / 100;
  GptStep step(timed, set.device(), sizes);
  double loss = step.run();
  timed.clear();
  const auto begin = Clock::now();
  for (auto _ : state) loss = step.run();
  const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  if (!std::isfinite(loss)) state.SkipWithError("the loss is not finite");
  const double tokens = static_cast<double>(sizes.sequence * sizes.micro * state.iterations());
  state.counters["tokens/s"] = benchmark::Counter(tokens, benchmark::Counter::kIsRate);
  report_flops(state, step.flops());
  const auto report = [&](Op op) {
    const OpTime& time = timed.of(op);
    if (time.seconds == 0) return;
    const bool product = time.flops > 0;
    const std::string rate = text("{} % {} {}", name_of(op), product ? "GFLOP/s" : "GB/s",
                                  static_cast<int>((product ? time.flops : time.bytes) / time.seconds * 1e-9));
    state.counters[rate] = 100 * time.seconds / seconds;
  };
#define TRIAX_OP(Args, name) report(Op::name);
  TRIAX_OPERATIONS(TRIAX_OP)
#undef TRIAX_OP
}
BENCHMARK(gpt_768)->ArgName("drop")->UseRealTime()->Arg(0)->Arg(10);

void peak_onednn(benchmark::State& state) {
  Set set;
  const std::int64_t n = state.range(0);
  const TensorView d = set.tensor({n, n}), a = set.tensor({n, n}), b = set.tensor({n, n});
  omp_set_num_threads(1);
  for (auto _ : state) dnnl_sgemm('N', 'N', n, n, n, 1, a.as<float>(), n, b.as<float>(), n, 0, d.as<float>(), n);
  report_flops(state, 2.0 * static_cast<double>(n * n * n));
}
BENCHMARK(peak_onednn)->ArgName("n")->UseRealTime()->Arg(1024)->Arg(2048);

} // namespace
} // namespace triax::bench

BENCHMARK_MAIN();
