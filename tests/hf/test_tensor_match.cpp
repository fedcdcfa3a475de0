// SPDX-License-Identifier: Apache-2.0
// Which tensors of a folder are parameters, copies or buffers, and what is said of the others.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hf/tensor_match.hpp"
#include "support/error_of.hpp"
#include "support/temp_folder.hpp"

namespace triax::hf {
namespace {

using test::error_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class MatchedTensors : public ::testing::Test {
 protected:
  MatchedTensors() {
    architecture_.name = "A";
    architecture_.optional_prefix = "m.";
    architecture_.copies = {{"m.head", "m.table"}, {"m.h.{}.copy", "m.h.{}.w"}, {"m.h.{}.same", "m.table"}};
    architecture_.ignored_tensors = {"m.h.{}.mask", "m.buffer"};
    for (const auto& [parameter, tensor] :
         {std::pair("embedding/table", "m.table"), std::pair("block 0/w", "m.h.0.w")}) {
      const HfParameter row{.parameter = parameter, .tensors = {tensor}};
      parameters_.push_back({parameter, {2, 3}, row, RowMap(row, 2)});
    }
    add("m.table", "F32", "[2,3]", std::string(24, 't'));
    add("m.h.0.w", "BF16", "[2,3]", std::string(12, 'w'));
  }

  void add(const std::string& name, const std::string& dtype, const std::string& shape, const std::string& data) {
    entries_[name] = {dtype, shape, data};
  }

  ModelTensors tensors() {
    std::string header = "{", data;
    for (const auto& [name, entry] : entries_) {
      header += text("{}\"{}\":{\"dtype\":\"{}\",\"shape\":{},\"data_offsets\":[{},{}]}", data.empty() ? "" : ",", name,
                     entry.dtype, entry.shape, data.size(), data.size() + entry.data.size());
      data += entry.data;
    }
    header += "}";
    const std::uint64_t length = header.size();
    test::write_file(folder_ / kSingleFile,
                     std::string(reinterpret_cast<const char*>(&length), sizeof length) + header + data);
    return ModelTensors(folder_.path());
  }

  std::vector<std::string> refusals() {
    std::vector<std::string> out;
    for (const Refusal& refusal : match_tensors(tensors(), {"model-x", architecture_, parameters_}).refusals)
      out.push_back(refusal.message.substr(refusal.message.find(": ") + 2) + " / " + refusal.hint);
    return out;
  }
  /// Of the bits of copies.
  std::string error() {
    const ModelTensors all = tensors();
    const TensorMatch match = match_tensors(all, {"model-x", architecture_, parameters_});
    EXPECT_TRUE(match.refusals.empty());
    return error_of([&] { check_copies(all, match, "model-x", {}); });
  }

  struct Entry {
    std::string dtype, shape, data;
  };
  const test::TempFolder folder_;
  std::map<std::string, Entry> entries_;
  HfArchitecture architecture_;
  std::vector<StoredParameter> parameters_;
};

TEST_F(MatchedTensors, MayHaveBuffersOfAnyType) {
  add("m.h.0.mask", "BOOL", "[1,1,2,2]", "1111");
  add("m.h.17.mask", "F8_E4M3", "[1,1,1,1,2]", "11");
  add("h.2.mask", "I64", "[1]", "12345678");
  add("m.buffer", "U16", "[2]", "1234");
  EXPECT_THAT(refusals(), IsEmpty());
  EXPECT_EQ(error(), "no error");
  add("m.buffer.0", "U16", "[2]", "1234");
  add("m.h.x.mask", "BOOL", "[2]", "12");
  EXPECT_THAT(refusals(),
              ElementsAre(HasSubstr("tensor \"m.buffer.0\" is not of A with this config.json (and 1 more) / "
                                    "the model has parts that model-x does not have")));
}

TEST_F(MatchedTensors, RefuseTypesOfParametersByName) {
  for (const auto& [dtype, bytes] :
       {std::pair("BOOL", 6), std::pair("I8", 6), std::pair("U8", 6), std::pair("F8_E5M2", 6), std::pair("F4", 3),
        std::pair("I16", 12), std::pair("I32", 24), std::pair("C64", 48)}) {
    add("m.h.0.w", dtype, "[2,3]", std::string(static_cast<std::size_t>(bytes), 'x'));
    EXPECT_THAT(refusals(),
                ElementsAre(text("tensor \"m.h.0.w\" has type {}, which is not a type of weights / quantized "
                                 "models cannot be imported: use the model that was quantized",
                                 dtype)));
  }
  add("m.h.0.w", "F64", "[2,3]", std::string(48, 'x'));
  EXPECT_THAT(refusals(),
              ElementsAre("tensor \"m.h.0.w\" has type F64, which would be rounded to F32 / save the model in "
                          "float32 first"));
  add("m.h.0.w", "F32", "[1,1,1,2,3]", std::string(24, 'x'));
  EXPECT_THAT(refusals(),
              ElementsAre("tensor \"m.h.0.w\" has shape [1, 1, 1, 2, 3], but config.json asks for [2, 3] / the file "
                          "and config.json are of different models"));
  entries_.erase("m.h.0.w");
  EXPECT_THAT(refusals(), ElementsAre(HasSubstr("tensor \"m.h.0.w\" of shape [2, 3] is missing")));
  add("h.0.w", "I8", "[2,3]", "123456");
  EXPECT_THAT(refusals(), ElementsAre(HasSubstr("tensor \"h.0.w\" has type I8")));
}

TEST_F(MatchedTensors, CompareCopiesOfAllNames) {
  add("head", "F32", "[2,3]", std::string(24, 't'));
  add("m.h.0.copy", "BF16", "[2,3]", std::string(12, 'w'));
  add("m.h.5.same", "F32", "[2,3]", std::string(24, 't'));
  EXPECT_THAT(refusals(), IsEmpty());
  EXPECT_EQ(error(), "no error");
  add("m.h.5.same", "F32", "[2,3]", std::string(23, 't') + "x");
  EXPECT_THAT(error(), HasSubstr("tensor \"m.h.5.same\" differs from \"m.table\", which model-x uses for both"));
  entries_.erase("m.h.5.same");
  add("m.h.0.copy", "BF16", "[3,2]", std::string(12, 'w'));
  EXPECT_THAT(error(), HasSubstr("tensor \"m.h.0.copy\" differs from \"m.h.0.w\""));
  add("m.h.0.copy", "F16", "[2,3]", std::string(12, 'w'));
  EXPECT_THAT(error(), HasSubstr("tensor \"m.h.0.copy\" differs from \"m.h.0.w\""));
}

TEST_F(MatchedTensors, CompareBothNamesOfACopy) {
  add("m.head", "F32", "[2,3]", std::string(24, 't'));
  add("head", "F32", "[2,3]", std::string(24, 'x'));
  EXPECT_THAT(error(), HasSubstr("tensor \"head\" differs from \"m.table\""));
}

TEST_F(MatchedTensors, RefuseCopiesOfNothing) {
  add("m.h.3.copy", "BF16", "[2,3]", std::string(12, 'w'));
  EXPECT_THAT(refusals(), ElementsAre(HasSubstr("tensor \"m.h.3.copy\" is not of A with this config.json")));
  entries_.erase("m.h.3.copy");
  add("m.head", "I8", "[2,3]", "123456");
  EXPECT_THAT(refusals(), ElementsAre(HasSubstr("tensor \"m.head\" has type I8, which is not a type of weights")));
}

/// Two tensors for one parameter.
TEST_F(MatchedTensors, RefuseASecondTensorWithoutThePrefix) {
  add("table", "F32", "[2,3]", std::string(24, 't'));
  EXPECT_THAT(refusals(), ElementsAre(HasSubstr("tensor \"table\" is not of A with this config.json")));
}

} // namespace
} // namespace triax::hf
