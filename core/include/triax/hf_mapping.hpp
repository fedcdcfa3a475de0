// SPDX-License-Identifier: Apache-2.0
// Optional interface of models: how the model is stored in a folder of Hugging Face's transformers, as tables. `triax
// import hf` and `triax export hf` need nothing else of a plugin; they read, rearrange, convert and check.
//
//   class MyModel final : public Model, public HfMapping {
//     void* extension(std::string_view id) noexcept override {
//       return id == HfMapping::kExtension ? static_cast<HfMapping*>(this) : nullptr;
//     }
//     std::vector<HfArchitecture> architectures() const override { return {...}; }
//     std::vector<HfParameter> parameters(std::string_view architecture) const override { return {...}; }
//   };
//
// docs/plugins/models.md explains the tables with an example; plugins/model-gpt/src/hf_gpt2.cpp is a complete one.
//
// Threads: the main thread. Ownership: values. Blocking: never. Errors: Error.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "triax/export.hpp"

namespace triax {

/// A value of config.json, and the text of the option that it means, as --set takes it: {"null", "0"}.
struct HfValue {
  std::string json, option;
};

/// A key of config.json that the model depends on.
struct HfKey {
  std::string key;         // "n_embd"; "rope_parameters.rope_theta" for a key in an object
  std::string option = {}; // key of [model] that has the value, also "vocab"; empty: the value is fixed
  /// The value of a file without the key, as JSON: "12", "null". Empty: the key is required.
  std::string absent = {};
  /// Values that have another text as the option. A fixed key allows only these, and export writes the first.
  std::vector<HfValue> values = {};
  bool only_values = false; // an option, too, allows only `values`
  /// Another name of the key with the same option, such as that of earlier versions: read if it is there, and
  /// only written with `also_written`. Files with both must have equal values. It has no `absent`.
  bool alternative = false;
  /// An option and its value, as --set takes it, that another key sets: with other values of that option, this key is
  /// neither read nor written. {"rope_scaling", "llama3"} for the factor of a scaling.
  std::pair<std::string, std::string> only_with = {};
  /// True for an alternative key that export writes too, for programs that read only this name. It leaves the key out
  /// where the value is that of files without it.
  bool also_written = false;
  /// The next step after the refusal of a value that is not supported; empty: use another model or plugin.
  std::string hint = {};
};

/// A tensor that repeats another one, such as a tied head. It may be absent; import requires the same bits. Both names
/// may have "{}" for the same number.
struct HfCopy {
  std::string tensor, of;
};

/// An architecture, as `architectures` of config.json names it. It does not depend on the model's options.
struct HfArchitecture {
  std::string name;       // "GPT2LMHeadModel"
  std::string model_type; // "gpt2"
  std::vector<HfKey> keys;
  /// Keys that do not change what the model computes: those of training, for example. Keys of the file that are in no
  /// list of the model or of Triax are refused.
  std::vector<std::string> ignored_keys = {};
  /// Options that the architecture implies without a key: {"qkv_bias", "true"}.
  std::vector<std::pair<std::string, std::string>> options = {};
  /// Beginning of names that files may leave out: "transformer.". The tables have the names with it.
  std::string optional_prefix = {};
  std::vector<HfCopy> copies = {};
  /// Buffers, of any type: "transformer.h.{}.attn.bias", or a name without a number.
  std::vector<std::string> ignored_tensors = {};
  /// Lists of the file with the one value, as JSON, that their elements may have: {"layer_types",
  /// "\"full_attention\""}. Other elements are refused, and lists without one element for each block. The list may be
  /// absent or null; export writes that of the imported model.
  std::vector<std::pair<std::string, std::string>> constant_lists = {};
};

/// How one parameter is stored. In names, "{}" stands for a number, the same in all names of the row; a name has one at
/// most. A parameter has one row, and a tensor one parameter.
///
/// The tensors are joined along their first dimension, after a transposition if they are transposed. The result has
/// rows in `parts` (q, k and v, for example). Parameters of the engine have the rows of each group, such as a head,
/// together: for each group its share of each part. With one group, the order is the same on both sides. Rows of a
/// parameter are all its dimensions but the last.
struct HfParameter {
  std::string parameter;            // "block {}/attention.qkv.weight", without padding
  std::vector<std::string> tensors; // "transformer.h.{}.attn.c_attn.weight"
  bool transposed = false;          // [in, out], as GPT-2's Conv1D
  /// Rows of each part. Empty: each tensor is a part, and all are of one size. With as many parts as tensors, each
  /// tensor is a part.
  std::vector<std::int64_t> parts = {};
  std::int64_t groups = 1; // divides the rows of each part
};

/// Optional interface of models: tables that say how transformers stores the model. Triax checks them before it uses
/// them: names that occur twice, values that are not of their option, options without a default that no key sets.
class TRIAX_API HfMapping {
 public:
  static constexpr std::string_view kExtension = "triax.hf_mapping";

  /// Must not depend on the options: before config.json is read, they have their defaults, and those without a default
  /// the smallest value of their range, or the first of their choices.
  virtual std::vector<HfArchitecture> architectures() const = 0;
  /// The parameters of a model with these options. Rows whose parameter the model does not have are not used; every
  /// parameter needs a row. Tied parameters have one: that of the first layer. May throw Error if the architecture
  /// cannot store a model with these options: export then takes the next one. Import reads the tensors as those of
  /// another architecture that the same options fit, and refuses the model if there is none.
  virtual std::vector<HfParameter> parameters(std::string_view architecture) const = 0;
  /// Options of this model whose value stands for one that the model computes, such as 0 for a default, with the
  /// computed value as --set takes it: {"inner", "11008"}. Export writes these values to config.json.
  virtual std::vector<std::pair<std::string, std::string>> resolved_options() const { return {}; }

 protected:
  ~HfMapping() = default;
};

} // namespace triax
