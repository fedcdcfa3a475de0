// SPDX-License-Identifier: Apache-2.0
// Efficiency of a kernel set on its device: every operation of a GPT block, the head and the optimizer at a model's
// shapes, compared with the roofline (Williams et al., CACM 2009) of a product and a copy that are measured first.
//
//   bench_operations --kernels kernels-cpu [--precision fp32] [--hidden 2048] ... [--benchmark_filter=...]
//
// "roofline" is the least time for the operation's arithmetic or its bytes (each view once) at those two rates, divided
// by the time it takes. Compare ratios within one run.
#include <benchmark/benchmark.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstddef>
#include <functional>
#include <vector>

#include "kernel_bench.hpp"

namespace triax::bench {
namespace {

struct Sizes {
  std::string kernels = "kernels-cpu", precision = "fp32";
  std::int64_t hidden = 256, heads = 4, sequence = 256, micro = 1, vocab = 1024;
  std::int64_t product = 1024; // n of the product that measures the peak
  std::int64_t copied = 64;    // MiB of the copy that measures the bandwidth
  std::int64_t repeats = 10;   // calls between two waits
  double dropout = 0.1;
};

DType dtype_of(const std::string& precision) {
  return precision == "bf16" ? DType::bf16 : precision == "fp16" ? DType::f16 : DType::f32;
}

/// Measured rates of the device, to compare operations with.
struct Roof {
  double flops = 0, bytes = 0; // per second
};

class Operations {
 public:
  explicit Operations(const Sizes& sizes) : sizes_(sizes), dtype_(dtype_of(sizes.precision)), set_(sizes.kernels) {
    const Refusals answer = set_.kernels().supports(KernelRequest{dtype_, DType::f32});
    if (!answer.empty()) throw to_error(answer);
    require_results();
    roof_ = {peak(), bandwidth()};
  }

  void list() {
    const std::int64_t h = sizes_.hidden;
    linear("qkv", h, 3 * h, Activation::none);
    linear("projection", h, h, Activation::none);
    linear("up", h, 4 * h, Activation::gelu_tanh);
    linear("down", 4 * h, h, Activation::none);
    gradient_before_gelu("down", 4 * h, h);
    attention();
    norms();
    elementwise();
    vocabulary();
    optimizer();
  }
  const Roof& roof() const { return roof_; }
  /// True if an operation did not run.
  bool failed() const { return failed_; }

 private:
  TensorView data(const Shape& shape) { return set_.noise(shape, dtype_); }
  TensorView single(const Shape& shape, double value = 0.01) { return set_.tensor(shape, value, DType::f32); }
  std::int64_t rows() const { return sizes_.sequence * sizes_.micro; }
  Shape stream() const { return {sizes_.sequence, sizes_.micro, sizes_.hidden}; }

  /// Refuses a set that only models time and writes no outputs: its times say nothing about a machine.
  void require_results() {
    const TensorView factor = data({64, 64}), out = data({64, 64});
    const auto on_host = [&] {
      std::vector<std::byte> bytes(out.bytes());
      set_.device().download({bytes.data(), dtype_, out.shape()}, out, set_.stream());
      set_.device().wait(set_.stream().record(), deadline_in(60));
      return bytes;
    };
    const std::vector<std::byte> before = on_host();
    set_.run(Gemm{.d = out, .a = factor, .b = factor});
    if (on_host() != before) return;
    throw Error(
        text("{} does not compute: a product did not change its output, so its times are not those of this machine",
             sizes_.kernels),
        {}, "name a kernel set that computes, kernels-cpu for example");
  }

  /// The best of several runs: the device's capability without the influence of other programs.
  template <class Body>
  double best(Body body) {
    double least = 1e30;
    for (int turn = 0; turn < 6; ++turn) {
      const double seconds = set_.seconds_of(3, body) / 3;
      if (turn > 0) least = std::min(least, seconds);
    }
    return least;
  }
  double peak() {
    const std::int64_t n = sizes_.product;
    const Gemm product{.d = data({n, n}), .a = data({n, n}), .b = data({n, n}), .transpose_b = true};
    set_.run(product);
    return 2 * std::pow(static_cast<double>(n), 3) / best([&] { set_.issue(call_of(product)); });
  }
  double bandwidth() {
    const Shape shape{sizes_.copied << 18};
    const TensorView from = single(shape), to = single(shape);
    const auto moved = static_cast<double>(2 * from.bytes());
    return moved / best([&] { set_.device().copy(to, from, set_.stream()); });
  }

  template <class Args>
  void add(const std::string& name, const Args& args) {
    benchmark::RegisterBenchmark(name.c_str(), [this, args](benchmark::State& state) {
      try {
        measure(state, args);
      } catch (const Error& error) {
        failed_ = true;
        state.SkipWithError(error.what());
      }
    })->UseManualTime();
  }
  template <class Args>
  void measure(benchmark::State& state, const Args& args) {
    const int repeats = static_cast<int>(sizes_.repeats);
    const OpCall call = call_of(args);
    set_.run(args);
    double total = 0;
    for (auto _ : state) {
      const double seconds = set_.seconds_of(repeats, [&] { set_.issue(call); }) / repeats;
      state.SetIterationTime(seconds);
      total += seconds;
    }
    const double seconds = total / static_cast<double>(state.iterations());
    if (call.flops > 0) {
      state.counters["TFLOP/s"] = call.flops / seconds * 1e-12;
    } else {
      state.counters["GB/s"] = call.bytes / seconds * 1e-9;
    }
    state.counters["roofline"] = std::max(call.flops / roof_.flops, call.bytes / roof_.bytes) / seconds;
  }

  void linear(const std::string& name, std::int64_t in, std::int64_t out, Activation act) {
    const TensorView x = data({rows(), in}), y = data({rows(), out}), w = data({out, in}), bias = data({out});
    const TensorView z = act == Activation::none ? TensorView{} : data({rows(), out});
    add("linear_fwd/" + name, LinearFwd{y, z, x, w, bias, act});
    add("linear_bwd_input/" + name, LinearBwdInput{x, y, w});
    add("linear_bwd_weight/" + name, LinearBwdWeight{single({out, in}), single({out}), y, x});
    if (act != Activation::none) add("act_bwd/" + name, ActBwd{act, y, y, z});
  }

  void gradient_before_gelu(const std::string& name, std::int64_t in, std::int64_t out) {
    const TensorView dy = data({rows(), out}), w = data({out, in}), z = data({rows(), in});
    const TensorView dz = data({rows(), in});
    add("linear_bwd_input_gelu/" + name, LinearBwdInput{dz, dy, w, z, Activation::gelu_tanh});
  }

  Drop drop() {
    Drop out;
    out.p = static_cast<float>(sizes_.dropout);
    std::vector<std::int64_t> samples(static_cast<std::size_t>(sizes_.micro));
    for (std::size_t i = 0; i < samples.size(); ++i) samples[i] = static_cast<std::int64_t>(i);
    out.samples = set_.tensor(samples, {sizes_.micro}, DType::i64);
    out.rows = sizes_.sequence;
    out.width = sizes_.hidden;
    return out;
  }

  void attention() {
    const std::int64_t s = sizes_.sequence, b = sizes_.micro, a = sizes_.heads, d = sizes_.hidden / a;
    const auto parts = [&](const TensorView& qkv) {
      return std::array{qkv.slice(3, 0, d), qkv.slice(3, d, 2 * d), qkv.slice(3, 2 * d, 3 * d)};
    };
    const auto x = parts(data({s, b, a, 3 * d})), dx = parts(data({s, b, a, 3 * d}));
    const TensorView o = data({s, b, a, d}), dout = data({s, b, a, d}), lse = single({b, a, s}, 8);
    const Mask causal{Mask::Kind::causal, 0, 0, {}};
    const double scale = 1 / std::sqrt(static_cast<double>(d));
    Drop dropped = drop();
    dropped.width = s;
    for (const bool drops : {false, true}) {
      const Drop with = drops ? dropped : Drop{};
      const char* name = drops ? "dropout" : "plain";
      add(text("attention_fwd/{}", name), AttentionFwd{o, lse, x[0], x[1], x[2], scale, causal, with});
      add(text("attention_bwd/{}", name),
          AttentionBwd{dx[0], dx[1], dx[2], dout, x[0], x[1], x[2], o, lse, scale, causal, with});
    }
  }

  void norms() {
    const std::int64_t h = sizes_.hidden;
    const TensorView x = data(stream()), y = data(stream()), dy = data(stream()), weight = data({h}), bias = data({h});
    const TensorView mean = single({rows()}), rstd = single({rows()}, 1);
    add("norm_fwd", NormFwd{NormKind::layer, y, x, weight, bias, mean, rstd});
    add("norm_bwd_input", NormBwdInput{NormKind::layer, y, dy, x, weight, mean, rstd, data(stream())});
    add("norm_bwd_weight", NormBwdWeight{NormKind::layer, single({h}), single({h}), dy, x, mean, rstd});
  }

  void elementwise() {
    const std::int64_t h = sizes_.hidden;
    const TensorView x = data(stream()), y = data(stream()), residual = data(stream()), bias = data({h});
    add("bias_dropout_add", BiasDropoutAdd{y, x, bias, residual, drop()});
    add("bias_dropout_add_norm", BiasDropoutAddNorm{y, data(stream()), single({rows()}), single({rows()}), x, bias,
                                                    residual, drop(), NormKind::layer, data({h}), data({h})});
    add("bias_bwd", BiasBwd{single({4 * h}), data({rows(), 4 * h})});
    add("add", Add{y, x, residual});
  }

  void vocabulary() {
    const std::int64_t v = sizes_.vocab;
    std::vector<std::int32_t> tokens(static_cast<std::size_t>(rows()));
    for (std::size_t i = 0; i < tokens.size(); ++i)
      tokens[i] = static_cast<std::int32_t>(i * 7919 % static_cast<std::size_t>(v));
    const TensorView ids = set_.tensor(tokens, {sizes_.sequence, sizes_.micro}, DType::i32);
    const TensorView targets = set_.tensor(tokens, {rows()}, DType::i32);
    add("embed_fwd", EmbedFwd{data(stream()), data({v, sizes_.hidden}), ids, 0, v});
    add("embed_bwd", EmbedBwd{single({v, sizes_.hidden}), data(stream()), ids, 0, v});
    const TensorView logits = data({rows(), v}), max = single({rows()}), sums = single({rows()}, 1),
                     own = single({rows()});
    const TensorView loss = set_.tensor(Shape{sizes_.micro}, 0, DType::f64);
    add("xent_fused", XentFused{loss, max, sums, own, logits, targets, v});
    add("xent_bwd", XentBwd{logits, max, sums, targets, 0, v, 1e-6, nullptr});
  }

  /// The parameters of one block, as the optimizer gets them.
  void optimizer() {
    const std::int64_t h = sizes_.hidden;
    const StepScalars scalars{.lr = 1e-6f, .step = 10};
    const auto* on_device = static_cast<const StepScalars*>(set_.block(&scalars, sizeof scalars));
    for (const Shape& shape : {Shape{3 * h, h}, Shape{3 * h}, Shape{h, h}, Shape{h}, Shape{4 * h, h}, Shape{4 * h},
                               Shape{h, 4 * h}, Shape{h}, Shape{h}, Shape{h}, Shape{h}, Shape{h}}) {
      const Shape flat{shape.elements()};
      shards_.push_back({single(flat), single(flat), single(flat), single(flat),
                         dtype_ == DType::f32 ? TensorView{} : data(flat), 0.9, 0.95, 1e-8, 0.1, on_device});
    }
    add("adamw", shards_.front());
    add("multi_adamw", MultiAdamW{shards_});
    add("sum_squares", SumSquares{set_.tensor(Shape{1}, 0, DType::f64), shards_.front().gradient});
  }

  const Sizes sizes_;
  const DType dtype_;
  KernelBench set_;
  Roof roof_;
  bool failed_ = false;
  std::vector<AdamW> shards_;
};

int run(int argc, char** argv) {
  const CLI::Range size_range(std::int64_t{1}, std::int64_t{1} << 20); // products of four sizes stay far below 2^63
  Sizes sizes;
  CLI::App app("every operation of a kernel set beside the roofline of its device");
  app.allow_extras();
  app.add_option("--kernels", sizes.kernels, "the kernel set")->capture_default_str();
  app.add_option("--precision", sizes.precision)->check(CLI::IsMember({"fp32", "bf16", "fp16"}))->capture_default_str();
  app.add_option("--hidden", sizes.hidden)->check(size_range)->capture_default_str();
  app.add_option("--heads", sizes.heads)->check(size_range)->capture_default_str();
  app.add_option("--sequence", sizes.sequence)->check(size_range)->capture_default_str();
  app.add_option("--micro", sizes.micro)->check(size_range)->capture_default_str();
  app.add_option("--vocab", sizes.vocab)->check(size_range)->capture_default_str();
  app.add_option("--dropout", sizes.dropout)->check(CLI::Range(0.0, 0.99))->capture_default_str();
  app.add_option("--product", sizes.product, "n of the product of n x n that gives the peak")
      ->check(size_range)
      ->capture_default_str();
  app.add_option("--copied-mib", sizes.copied, "size of the copy that gives the bandwidth")
      ->check(size_range)
      ->capture_default_str();
  app.add_option("--repeats", sizes.repeats, "calls between two waits")->check(size_range)->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  if (sizes.hidden % sizes.heads != 0) throw Error("--hidden is not divisible by --heads");

  std::vector<std::string> rest = app.remaining();
  std::vector<char*> arguments{argv[0]};
  for (std::string& argument : rest) arguments.push_back(argument.data());
  int count = static_cast<int>(arguments.size());
  benchmark::Initialize(&count, arguments.data());
  if (benchmark::ReportUnrecognizedArguments(count, arguments.data())) return 2;

  Operations operations(sizes);
  operations.list();
  benchmark::AddCustomContext("kernels", text("{}, {}", sizes.kernels, sizes.precision));
  benchmark::AddCustomContext("product_TFLOP/s", text("{}", operations.roof().flops * 1e-12));
  benchmark::AddCustomContext("copy_GB/s", text("{}", operations.roof().bytes * 1e-9));
  benchmark::RunSpecifiedBenchmarks();
  return operations.failed() ? 1 : 0;
}

} // namespace
} // namespace triax::bench

int main(int argc, char** argv) {
  try {
    return triax::bench::run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_operations: %s\n", error.what());
    return 2;
  }
}
