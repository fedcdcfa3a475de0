// SPDX-License-Identifier: Apache-2.0
#include "hf/tensor_match.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <set>

#include "base/printable.hpp"
#include "checkpoint/blocks.hpp"
#include "checkpoint/weights.hpp"
#include "hf/grouped_refusals.hpp"
#include "hf/hints.hpp"
#include "hf/name_pattern.hpp"

namespace triax::hf {

namespace {

class Matching {
 public:
  Matching(const ModelTensors& tensors, const MatchedModel& model) : tensors_(tensors), model_(model) {}

  TensorMatch run() {
    for (const StoredParameter& parameter : model_.parameters) match(parameter);
    for (const HfCopy& copy : model_.architecture.copies) add_copies(copy);
    for (const auto& [name, tensor] : tensors_.all()) refuse_other(name, tensors_.file_of(tensor));
    for (const auto& [name, foreign] : tensors_.foreign()) refuse_other(name, tensors_.file_of(foreign));
    out_.refusals = refused_.take();
    return std::move(out_);
  }

 private:
  void match(const StoredParameter& parameter) {
    std::vector<const ModelTensors::Tensor*>& source = out_.sources.emplace_back();
    for (std::size_t i = 0; i < parameter.row.tensors.size(); ++i) {
      const std::string& name = parameter.row.tensors[i];
      const Shape wanted = parameter.tensor_shape(i);
      const ModelTensors::Tensor* const tensor = find(tensors_.all(), name);
      source.push_back(tensor);
      if (tensor) {
        check_tensor(*tensor, wanted);
      } else if (const ModelTensors::Foreign* const foreign = find(tensors_.foreign(), name)) {
        refuse_foreign(*foreign, wanted);
      } else {
        refused_.add({ErrorCode::kMissing,
                      {},
                      text("{}: tensor \"{}\" of shape {} is missing", tensors_.folder(), name, to_text(wanted)),
                      "the folder is not complete, or its config.json is of another model"});
      }
    }
  }

  void check_tensor(const ModelTensors::Tensor& tensor, const Shape& wanted) {
    const checkpoint::TensorEntry& entry = tensor.entry;
    const std::filesystem::path& file = tensors_.file_of(tensor);
    used_.insert(entry.name);
    if (!(entry.shape == wanted)) refuse_shape(file, entry.name, to_text(entry.shape), wanted);
    if (!is_floating(entry.dtype)) refuse_type(file, entry.name, checkpoint::safetensors_name(entry.dtype));
    if (entry.dtype == DType::f64)
      refuse(file, entry.name, ErrorCode::kUnsupported, "has type F64, which would be rounded to F32",
             "save the model in float32 first");
  }

  /// Its type is of the format and not of Triax, or it has too many dimensions.
  void refuse_foreign(const ModelTensors::Foreign& tensor, const Shape& wanted) {
    const checkpoint::ForeignTensor& entry = tensor.entry;
    used_.insert(entry.name);
    if (checkpoint::type_of_safetensors(entry.dtype)) {
      refuse_shape(tensors_.file_of(tensor), entry.name, entry.shape, wanted);
    } else {
      refuse_type(tensors_.file_of(tensor), entry.name, entry.dtype);
    }
  }

  void refuse_shape(const std::filesystem::path& file, const std::string& name, const std::string& shape,
                    const Shape& wanted) {
    refuse(file, name, ErrorCode::kIncompatible,
           text("has shape {}, but config.json asks for {}", shortened(shape), to_text(wanted)),
           "the file and config.json are of different models");
  }

  void refuse_type(const std::filesystem::path& file, const std::string& name, std::string_view type) {
    refuse(file, name, ErrorCode::kWrongType, text("has type {}, which is not a type of weights", type), kQuantized);
  }

  void refuse(const std::filesystem::path& file, const std::string& name, ErrorCode code, const std::string& why,
              const std::string& hint) {
    refused_.add({code, {}, text("{}: tensor \"{}\" {}", file, shortened(printable(name)), why), hint});
  }

  /// All tensors that repeat another one. One that is a separate parameter, such as an untied head, is not a copy.
  void add_copies(const HfCopy& copy) {
    for (const auto& [name, tensor] : tensors_.all()) {
      const std::optional<std::string> number = number_of(name, copy.tensor);
      if (!number || used_.contains(name)) continue;
      const ModelTensors::Tensor* const of = find(tensors_.all(), with_number(copy.of, *number));
      if (!of || of == &tensor) continue;
      out_.copies.push_back({&tensor, of});
      accepted_.insert(name);
    }
    for (const auto& [name, foreign] : tensors_.foreign()) {
      if (!number_of(name, copy.tensor) || used_.contains(name)) continue;
      refuse_type(tensors_.file_of(foreign), name, foreign.entry.dtype);
      accepted_.insert(name);
    }
  }

  void refuse_other(const std::string& name, const std::filesystem::path& file) {
    if (used_.contains(name) || accepted_.contains(name)) return;
    const auto fits = [&](const std::string& pattern) { return number_of(name, pattern).has_value(); };
    if (std::ranges::any_of(model_.architecture.ignored_tensors, fits)) return;
    refuse(file, name, ErrorCode::kUnsupported, text("is not of {} with this config.json", model_.architecture.name),
           text("the model has parts that {} does not have, or config.json is of another model", model_.plugin));
  }

  /// The number in a name of the file, which may lack the prefix.
  std::optional<std::string> number_of(const std::string& name, const std::string& pattern) const {
    const std::string& prefix = model_.architecture.optional_prefix;
    const std::optional<std::string> out = number_in(name, pattern);
    return out || prefix.empty() ? out : number_in(prefix + name, pattern);
  }

  /// The tensor of this name, with the prefix or without; null if there is none.
  template <class Value>
  const Value* find(const std::map<std::string, Value>& all, const std::string& name) const {
    const std::string& prefix = model_.architecture.optional_prefix;
    auto found = all.find(name);
    if (found == all.end() && !prefix.empty() && name.starts_with(prefix)) found = all.find(name.substr(prefix.size()));
    return found == all.end() ? nullptr : &found->second;
  }

  const ModelTensors& tensors_;
  const MatchedModel& model_;
  TensorMatch out_;
  GroupedRefusals refused_;
  std::set<std::string> used_, accepted_; // by parameters; otherwise
};

bool is_equal(const ModelTensors& tensors, const TensorMatch::Copy& copy, const checkpoint::StopRequest& stop) {
  const checkpoint::TensorEntry &a = copy.tensor->entry, &b = copy.of->entry;
  if (a.dtype != b.dtype || !(a.shape == b.shape)) return false;
  std::vector<std::byte> of_a, of_b;
  constexpr std::uint64_t kBlock = checkpoint::kBlockElements;
  for (std::uint64_t at = 0; at < a.bytes(); at += kBlock) {
    checkpoint::check_stop(stop);
    of_a.resize(std::min(kBlock, a.bytes() - at));
    of_b.resize(of_a.size());
    tensors.read(*copy.tensor, at, of_a);
    tensors.read(*copy.of, at, of_b);
    if (of_a != of_b) return false;
  }
  return true;
}

} // namespace

TensorMatch match_tensors(const ModelTensors& tensors, const MatchedModel& model) {
  return Matching(tensors, model).run();
}

void check_copies(const ModelTensors& tensors, const TensorMatch& match, const std::string& plugin,
                  const checkpoint::StopRequest& stop) {
  for (const TensorMatch::Copy& copy : match.copies)
    if (!is_equal(tensors, copy, stop))
      throw Error(text("tensor \"{}\" differs from \"{}\", which {} uses for both", copy.tensor->entry.name,
                       copy.of->entry.name, plugin),
                  tensors.file_of(*copy.tensor).string(),
                  "the model is not tied: use a model plugin that has both tensors");
}

} // namespace triax::hf
