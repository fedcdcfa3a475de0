// SPDX-License-Identifier: Apache-2.0
// Compares complete training runs with PyTorch: same weights, same tokens, ten steps with each optimizer.
//
// scripts/make-torch-reference.py creates torch_reference.json; this test does not need PyTorch.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "config/load.hpp"
#include "control/job_local_store.hpp"
#include "formula.hpp"
#include "train/training_rank.hpp"

namespace triax::parity {
namespace {

using Json = nlohmann::json;

const Json& reference() {
  static const Json loaded = Json::parse(std::ifstream(TRIAX_SOURCE_DIR "/tests/parity/torch_reference.json"));
  return loaded;
}

/// Sample n is part n mod B of the stream, so that every step uses the whole stream.
class Samples final : public executor::BatchSource {
 public:
  void microbatch(std::span<const std::int64_t> samples, const TensorView& tokens, const TensorView& targets) override {
    const std::int64_t length = tokens.size(0), micro = tokens.size(1), parts = reference()["global"];
    const std::uint32_t vocab = reference()["vocab"];
    for (std::int64_t s = 0; s < length; ++s) {
      for (std::int64_t b = 0; b < micro; ++b) {
        const std::int64_t position = samples[static_cast<std::size_t>(b)] % parts * length + s;
        tokens.as<std::int32_t>()[s * micro + b] = token(static_cast<std::uint64_t>(position), vocab);
        targets.as<std::int32_t>()[s * micro + b] = token(static_cast<std::uint64_t>(position + 1), vocab);
      }
    }
  }
};

void fill(const train::RankParameter& parameter) {
  const double centre = parameter.spec->init.kind == Init::Kind::ones ? 1 : 0;
  for (std::int64_t i = 0; i < parameter.master.elements(); ++i) {
    const double value = weight(static_cast<std::uint64_t>(i), parameter.spec->site, centre);
    if (parameter.master.dtype() == DType::f64) {
      parameter.master.as<double>()[i] = value;
    } else {
      parameter.master.as<float>()[i] = static_cast<float>(value);
    }
  }
}

double norm(const TensorView& view) {
  double sum = 0;
  for (std::int64_t i = 0; i < view.elements(); ++i) {
    const double value = view.dtype() == DType::f64 ? view.as<double>()[i] : view.as<float>()[i];
    sum += value * value;
  }
  return std::sqrt(sum);
}

struct Case {
  const char* name;
  const char* kernels;
  const char* precision;                 // of the run
  const char* torch;                     // of the reference
  std::size_t run;                       // index of the reference's run
  double first_loss, first_norms, later; // largest differences; norms and later losses are relative
  const char* plugin = "model-gpt";

  /// The part of the reference with its sizes and runs.
  const Json& of_model() const { return std::string(plugin) == "model-llama" ? reference()["llama"] : reference(); }
};

void PrintTo(const Case& one, std::ostream* out) {
  *out << one.name;
}

class Torch : public ::testing::TestWithParam<Case> {
 protected:
  Torch() {
    std::filesystem::create_directories(folder_);
    for (const char* ending : {".bin", ".idx"}) std::ofstream(folder_ / (std::string("tokens") + ending));
    std::ofstream out(folder_ / "run.toml");
    const Json &all = reference(), &run = GetParam().of_model()["runs"][GetParam().run];
    out << "[model]\nplugin = \"" << GetParam().plugin << "\"\nvocab = " << all["vocab"] << "\n";
    for (const auto& [key, value] : GetParam().of_model()["model"].items()) out << key << " = " << value << "\n";
    out << "[parallel]\ndata = 1\n[batch]\nglobal = " << all["global"] << "\nmicro = " << all["micro"] << "\n"
        << "[schedule]\nplugin = \"sched-gpipe\"\n[comm]\nplugin = \"comm-local\"\n"
        << "[kernels]\nplugin = \"" << GetParam().kernels << "\"\n"
        << "[optimizer]\nplugin = " << run["plugin"] << "\nlr = " << run["lr"] << "\n"
        << "weight_decay = " << run["weight_decay"] << "\n";
    for (const auto& [key, value] : run["options"].items()) out << key << " = " << value << "\n";
    out << "[train]\nsteps = " << all["steps"] << "\nprecision = \"" << GetParam().precision << "\"\n"
        << "clip_grad = " << run["clip_grad"] << "\n[data]\npath = \"tokens\"\n[run]\ndir = \"run\"\n";
  }
  ~Torch() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path folder_ =
      std::filesystem::path(::testing::TempDir()) / (std::string("triax-parity-") + GetParam().name);
  Samples samples_;
  control::LocalStore store_;
  Layout layout_ = Layout::ptd(1, 1, 1);
};

TEST_P(Torch, TenSteps) {
  const config::LoadResult loaded = config::load(folder_ / "run.toml", {});
  ASSERT_TRUE(loaded.run) << loaded.refusals.front().text;
  train::RankOptions options;
  options.training = &samples_;
  train::Rank rank(*loaded.run, layout_, 0, store_, null_log(), options);
  for (const train::RankParameter& parameter : rank.parameters()) fill(parameter);
  rank.weights_changed();

  const Json& expected = GetParam().of_model()["runs"][GetParam().run][GetParam().torch];
  ASSERT_EQ(rank.parameters().size(), expected["parameter_grad_norms"].size());
  for (std::size_t i = 0; i < reference()["steps"]; ++i) {
    const train::StepResult step = rank.step();
    const double loss = expected["losses"][i], grad_norm = expected["grad_norms"][i];
    const double of_norm = i == 0 ? GetParam().first_norms : GetParam().later;
    EXPECT_NEAR(step.loss, loss, i == 0 ? GetParam().first_loss : GetParam().later * loss) << "step " << step.step;
    EXPECT_NEAR(step.grad_norm, grad_norm, of_norm * grad_norm) << "step " << step.step;
    if (i != 0) continue;
    for (const auto& [name, value] : expected["parameter_grad_norms"].items()) {
      const double expected_norm = value;
      EXPECT_NEAR(norm(rank.parameter(name).gradient), expected_norm, of_norm * expected_norm) << name;
    }
  }
}

// In double, the remaining differences come from the learning rate and the clip coefficient, which are floats.
constexpr Case kCases[] = {
    {"reference_adamw", "kernels-reference", "fp32", "float32", 0, 1e-6, 1e-5, 1e-5},
    {"reference_sgd", "kernels-reference", "fp32", "float32", 1, 1e-6, 1e-5, 1e-5},
    {"cpu_adamw", "kernels-cpu", "fp32", "float32", 0, 1e-6, 1e-5, 1e-5},
    {"cpu_sgd", "kernels-cpu", "fp32", "float32", 1, 1e-6, 1e-5, 1e-5},
    {"double_adamw", "kernels-reference", "fp64", "float64", 0, 1e-12, 1e-11, 1e-7},
    {"double_sgd", "kernels-reference", "fp64", "float64", 1, 1e-12, 1e-11, 1e-7},
    {"llama_reference_adamw", "kernels-reference", "fp32", "float32", 0, 1e-6, 1e-5, 1e-5, "model-llama"},
    {"llama_reference_sgd", "kernels-reference", "fp32", "float32", 1, 1e-6, 1e-5, 1e-5, "model-llama"},
    {"llama_cpu_adamw", "kernels-cpu", "fp32", "float32", 0, 1e-6, 1e-5, 1e-5, "model-llama"},
    {"llama_cpu_sgd", "kernels-cpu", "fp32", "float32", 1, 1e-6, 1e-5, 1e-5, "model-llama"},
    {"llama_double_adamw", "kernels-reference", "fp64", "float64", 0, 1e-12, 1e-11, 1e-7, "model-llama"},
    {"llama_double_sgd", "kernels-reference", "fp64", "float64", 1, 1e-12, 1e-11, 1e-7, "model-llama"},
};

INSTANTIATE_TEST_SUITE_P(Reference, Torch, ::testing::ValuesIn(kCases),
                         [](const auto& one) { return std::string(one.param.name); });

} // namespace
} // namespace triax::parity
