// SPDX-License-Identifier: Apache-2.0
#include "evaluate/evaluate_text.hpp"

#include <cmath>
#include <numbers>

#include "common/table.hpp"
#include "report/units.hpp"
#include "train/train_text.hpp"

namespace triax::app {

namespace {

using Json = nlohmann::ordered_json;

/// The loss in bits per token. A loss is in nats.
double bits(const train::LoopResult& result) {
  return *result.eval_loss / std::numbers::ln2;
}

double bits_per_byte(const train::LoopResult& result) {
  return bits(result) * static_cast<double>(result.eval_tokens) / static_cast<double>(result.eval_bytes);
}

/// e^710 is too large for a double.
Json finite_or_null(double value) {
  return std::isfinite(value) ? Json(value) : Json(nullptr);
}

} // namespace

std::string evaluation_line(const config::RunConfig& run, const train::LoopResult& result) {
  const std::string speed = report::count_text(result.tokens_per_s) + " tokens/s";
  // A mean of logarithms of probabilities is 0 only if no kernel computed it.
  if (*result.eval_loss == 0)
    return text("ran {} samples: {} does not compute, so the loss is 0; {}", grouped(result.eval_samples),
                run.kernels.name, speed);
  const bool has_bytes = result.eval_bytes > 0;
  const std::string per_byte =
      has_bytes ? report::decimals_text(bits_per_byte(result), 4) + " bits per byte"
                : report::decimals_text(bits(result), 4) + " bits per token (the number of bytes is not known)";
  return text("loss {}, perplexity {}, {}: {} token{} of {} sample{}, {}; weights of {}",
              report::decimals_text(*result.eval_loss, 4), report::decimals_text(std::exp(*result.eval_loss), 3),
              per_byte, grouped(result.eval_tokens), result.eval_tokens == 1 ? "" : "s", grouped(result.eval_samples),
              result.eval_samples == 1 ? "" : "s", speed, shown(result.checkpoint));
}

void add_evaluation(Json& out, const train::LoopResult& result) {
  for (const char* key : {"checkpoint", "step", "loss", "perplexity", "bits_per_token", "bits_per_byte", "samples",
                          "tokens", "bytes", "tokens_per_s"})
    out[key] = nullptr;
  if (!result.checkpoint.empty()) {
    out["checkpoint"] = result.checkpoint;
    out["step"] = result.last_step;
  }
  if (!result.eval_loss) return;
  out["loss"] = *result.eval_loss;
  out["perplexity"] = finite_or_null(std::exp(*result.eval_loss));
  out["bits_per_token"] = bits(result);
  out["samples"] = result.eval_samples;
  out["tokens"] = result.eval_tokens;
  out["tokens_per_s"] = result.tokens_per_s;
  if (result.eval_bytes == 0) return;
  out["bits_per_byte"] = bits_per_byte(result);
  out["bytes"] = result.eval_bytes;
}

} // namespace triax::app
