// SPDX-License-Identifier: Apache-2.0
// Mistakes in the tables of a model plugin are errors of the plugin, and not of the user.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <functional>

#include "hf/architecture_choice.hpp"
#include "hf/table_checks.hpp"
#include "support/error_of.hpp"
#include "support/temp_folder.hpp"
#include "triax/plugin.hpp"

namespace triax::hf {
namespace {

using test::error_of;
using ::testing::AllOf;
using ::testing::HasSubstr;

OptionRows table_rows() {
  OptionRows out;
  for (const triax_option& row :
       {option_int("vocab", nullptr, 1, 1000, "doc"), option_int("heads", nullptr, 1, 64, "doc"),
        option_float("base", "1", 1, 1e9, "doc"), option_string("scaling", "none", "none|other", "doc"),
        option_bool("tied", "false", "doc"), option_path("file", "", "doc")})
    out[row.name] = row;
  return out;
}

HfArchitecture good_architecture() {
  return {.name = "A",
          .model_type = "a",
          .keys = {{.key = "vocab_size", .option = "vocab"},
                   {.key = "n_head", .option = "heads", .absent = "12", .values = {{"null", "1"}}},
                   {.key = "rope.theta", .option = "base", .absent = "1e4"},
                   {.key = "theta", .option = "base", .alternative = true},
                   {.key = "rope.type", .option = "scaling", .values = {{"\"x\"", "other"}}, .only_values = true},
                   {.key = "act", .absent = "null", .values = {{"\"gelu\"", ""}}}},
          .ignored_keys = {"initializer_range"},
          .options = {{"tied", "true"}},
          .optional_prefix = "model.",
          .copies = {{"head", "table"}, {"h.{}.copy", "h.{}.w"}},
          .ignored_tensors = {"h.{}.mask", "buffer"},
          .constant_lists = {{"layer_types", "\"full\""}}};
}

std::string refusal_of(const std::function<void(HfArchitecture&)>& change) {
  HfArchitecture architecture = good_architecture();
  change(architecture);
  return error_of([&] { check_architectures({architecture}, table_rows(), {"model-x", "/x/model-x.so"}); });
}

TEST(TableChecks, AcceptGoodTables) {
  EXPECT_EQ(refusal_of([](HfArchitecture&) {}), "no error");
  EXPECT_EQ(error_of([] { check_architectures({}, {}, {}); }), "no error");
}

TEST(TableChecks, NameThePlugin) {
  EXPECT_EQ(
      refusal_of([](HfArchitecture& a) { a.keys.push_back(a.keys[1]); }),
      "/x/model-x.so: architectures() of model-x: A: the key n_head is listed twice\n  this is a defect of the model "
      "plugin: report it to its author");
}

TEST(TableChecks, RefuseWrongKeys) {
  const auto with_key = [](const HfKey& key) { return refusal_of([&](HfArchitecture& a) { a.keys.push_back(key); }); };
  for (const char* name : {"", ".a", "a.", "a..b", "\xff"})
    EXPECT_THAT(with_key({.key = name, .values = {{"1", ""}}}), HasSubstr("is not a name")) << name;
  for (const char* name : {"architectures", "model_type", "dtype", "torch_dtype"})
    EXPECT_THAT(with_key({.key = name, .values = {{"1", ""}}}), HasSubstr("is reserved for Triax"));
  EXPECT_THAT(with_key({.key = "rope", .values = {{"1", ""}}}),
              HasSubstr("rope is both a key and an object with keys"));
  EXPECT_THAT(with_key({.key = "act.name", .values = {{"1", ""}}}),
              HasSubstr("act is both a key and an object with keys"));
  EXPECT_THAT(with_key({.key = "k"}), HasSubstr("k has neither an option nor values"));
  EXPECT_THAT(with_key({.key = "k", .option = "base", .only_values = true}),
              HasSubstr("k has only_values and no values"));
  EXPECT_THAT(with_key({.key = "k", .values = {{"gelu", ""}}}), HasSubstr("k has a value that is not JSON"));
  EXPECT_THAT(with_key({.key = "k", .absent = "NaN", .values = {{"1", ""}}}),
              HasSubstr("k has a value that is not JSON"));
  EXPECT_THAT(with_key({.key = "k", .values = {{"1", ""}, {"1.0", ""}}}), HasSubstr("k has the value 1.0 twice"));
  EXPECT_THAT(refusal_of([](HfArchitecture& a) {
                a.ignored_keys = {"x", "x"};
              }),
              HasSubstr("the key x is ignored twice"));
  for (const char* name : {"act", "rope", "rope.type"})
    EXPECT_THAT(refusal_of([&](HfArchitecture& a) { a.ignored_keys = {name}; }),
                HasSubstr(text("the key {} is both read and ignored", name)));
}

TEST(TableChecks, RefuseWrongLists) {
  const auto with_list = [](const std::string& key, const std::string& value) {
    return refusal_of([&](HfArchitecture& a) { a.constant_lists.emplace_back(key, value); });
  };
  EXPECT_THAT(with_list("a..b", "1"), HasSubstr("is not a name"));
  EXPECT_THAT(with_list("act", "1"), HasSubstr("the key act is listed twice"));
  EXPECT_THAT(with_list("initializer_range", "1"), HasSubstr("the key initializer_range is both read and ignored"));
  EXPECT_THAT(with_list("rope", "1"), HasSubstr("rope is both a key and an object with keys"));
  EXPECT_THAT(with_list("types", "full"), HasSubstr("types has a value that is not JSON"));
}

TEST(TableChecks, RefuseWrongOptions) {
  const auto with_key = [](const HfKey& key) { return refusal_of([&](HfArchitecture& a) { a.keys.push_back(key); }); };
  EXPECT_THAT(with_key({.key = "k", .option = "none"}),
              HasSubstr("k names the option \"none\", which the plugin does not"));
  EXPECT_THAT(with_key({.key = "k", .values = {{"1", ""}}, .only_with = {"none", "1"}}),
              HasSubstr("k names the option \"none\", which the plugin does not"));
  EXPECT_THAT(with_key({.key = "k", .option = "file"}), HasSubstr("\"file\", whose type config.json does not have"));
  EXPECT_THAT(with_key({.key = "k", .option = "heads", .values = {{"null", "many"}}}), HasSubstr("k: heads"));
  EXPECT_THAT(with_key({.key = "k", .option = "heads", .values = {{"null", "65"}}}),
              HasSubstr("k: heads must be in [1, 64], got 65"));
  EXPECT_THAT(with_key({.key = "k", .option = "heads", .absent = "null"}),
              HasSubstr("k = null of files without the key is not a value of the option \"heads\""));
  EXPECT_THAT(refusal_of([](HfArchitecture& a) { a.keys.erase(a.keys.begin() + 1); }),
              HasSubstr("no key sets the option \"heads\", which has no default"));
  EXPECT_THAT(refusal_of([](HfArchitecture& a) { a.keys.erase(a.keys.begin()); }),
              HasSubstr("no key sets the option \"vocab\""));
  EXPECT_THAT(refusal_of([](HfArchitecture& a) {
                a.options = {{"none", "1"}};
              }),
              HasSubstr("options names the option \"none\", which the plugin does not have"));
  EXPECT_THAT(refusal_of([](HfArchitecture& a) { a.options = {{"tied", "maybe"}}; }), HasSubstr("options: tied"));
  EXPECT_THAT(refusal_of([](HfArchitecture& a) { a.options.emplace_back("heads", "3"); }),
              HasSubstr("the option \"heads\" is set twice"));
  EXPECT_THAT(refusal_of([](HfArchitecture& a) { a.options.push_back(a.options[0]); }),
              HasSubstr("the option \"tied\" is set twice"));
}

TEST(TableChecks, RefuseWrongAlternatives) {
  const auto with_key = [](const HfKey& key) { return refusal_of([&](HfArchitecture& a) { a.keys.push_back(key); }); };
  EXPECT_THAT(with_key({.key = "k", .values = {{"1", ""}}, .alternative = true}),
              HasSubstr("k is an alternative of no key"));
  EXPECT_THAT(with_key({.key = "k", .option = "tied", .alternative = true}),
              HasSubstr("k is an alternative of no key"));
  EXPECT_THAT(with_key({.key = "k", .option = "tied", .absent = "true", .also_written = true}),
              HasSubstr("k is also_written, but not an alternative"));
  EXPECT_THAT(with_key({.key = "k", .option = "base", .absent = "1", .alternative = true}),
              HasSubstr("k is an alternative, but has a value of files without it"));
}

TEST(TableChecks, RefuseWrongTensors) {
  const auto with_copy = [](const HfCopy& copy) { return refusal_of([&](HfArchitecture& a) { a.copies = {copy}; }); };
  EXPECT_THAT(with_copy({"", "a"}), HasSubstr("is not a name with one {} at most"));
  EXPECT_THAT(with_copy({"a.{}.{}", "a"}), HasSubstr("\"a.{}.{}\" is not a name with one {} at most"));
  EXPECT_THAT(with_copy({"a", "b.{}"}), HasSubstr("\"b.{}\" has {}, but its copy \"a\" does not"));
  EXPECT_THAT(with_copy({"a", "a"}), HasSubstr("tensor \"a\" is a copy of itself"));
  EXPECT_EQ(with_copy({"a.{}", "b"}), "no error");
  EXPECT_THAT(refusal_of([](HfArchitecture& a) { a.ignored_tensors = {"head"}; }),
              HasSubstr("tensor \"head\" is listed twice"));
  EXPECT_THAT(refusal_of([](HfArchitecture& a) { a.ignored_tensors = {"a.{}.b.{}"}; }),
              HasSubstr("is not a name with one"));
  EXPECT_THAT(refusal_of([](HfArchitecture& a) { a.optional_prefix = "h.{}."; }),
              HasSubstr("is not the beginning of a name"));
}

TEST(TableChecks, RefuseArchitecturesThatOccurTwice) {
  const auto check = [](const std::vector<HfArchitecture>& all) {
    return error_of([&] { check_architectures(all, table_rows(), {"model-x", {}}); });
  };
  EXPECT_THAT(check({good_architecture(), good_architecture()}),
              HasSubstr("architectures() of model-x: A is listed twice"));
  HfArchitecture nameless = good_architecture();
  nameless.model_type.clear();
  EXPECT_THAT(check({nameless}), HasSubstr("an architecture without name or model_type"));
}

TEST(TableChecks, RefuseWrongRows) {
  const auto refusal = [](const std::vector<HfParameter>& rows) {
    return error_of([&] { check_parameters(rows, {"model-x", "/x/model-x.so"}); });
  };
  const HfParameter good{.parameter = "block {}/w", .tensors = {"h.{}.w"}};
  EXPECT_EQ(refusal({good, {.parameter = "head/w", .tensors = {"w"}}}), "no error");
  EXPECT_EQ(
      refusal({good, good}),
      "/x/model-x.so: parameters() of model-x: parameter \"block {}/w\" is listed twice\n  this is a defect of the "
      "model plugin: report it to its author");
  EXPECT_THAT(refusal({{.parameter = "", .tensors = {"w"}}}), HasSubstr("parameter \"\" is not a name"));
  EXPECT_THAT(refusal({{.parameter = "block {}/expert {}/w", .tensors = {"h.{}.w"}}}),
              HasSubstr("parameter \"block {}/expert {}/w\" is not a name with one {} at most"));
  EXPECT_THAT(refusal({{.parameter = "block {}/w", .tensors = {"h.{}.e.{}.w"}}}),
              HasSubstr("tensor \"h.{}.e.{}.w\" of \"block {}/w\" is not a name with one {} at most"));
  EXPECT_THAT(refusal({{.parameter = "block {}/w", .tensors = {"h.{}.w", "w"}}}),
              HasSubstr("parameter \"block {}/w\" and its tensor \"w\" must both contain \"{}\", or neither"));
  EXPECT_THAT(refusal({{.parameter = "head/w", .tensors = {"h.{}.w"}}}),
              HasSubstr("parameter \"head/w\" and its tensor \"h.{}.w\" must both contain"));
}

/// The tables of model-wrong have a mistake that a variable names.
class WrongTables : public ::testing::Test {
 protected:
  ~WrongTables() override { ::unsetenv("TRIAX_TEST_TABLES"); }

  std::string refusal(const char* mistake, const char* architecture = "\"WrongForCausalLM\"", const char* plugin = "") {
    ::setenv("TRIAX_TEST_TABLES", mistake, 1);
    test::write_file(folder_ / "config.json", text(R"({"architectures": [{}], "model_type": "wrong"})", architecture));
    return error_of([&] {
      const ArchitectureChoice choice = choose_architecture(read_model_config(folder_.path()), plugin, {TEST_PLUGINS});
      const MappedModel model(choice.plugin, {{"vocab", "7"},
                                              {"layers", "2"},
                                              {"hidden", "8"},
                                              {"heads", "4"},
                                              {"kv_heads", "2"},
                                              {"inner", "5"},
                                              {"tied", "false"}});
      model.parameters(choice.plugin.architectures[choice.index]);
    });
  }
  const test::TempFolder folder_;
};

TEST_F(WrongTables, AreRefusedIfThePluginIsNamed) {
  EXPECT_EQ(refusal("none"), "no error");
  EXPECT_EQ(refusal("none", ""), "no error"); // by model_type
  for (const auto& [mistake, why] :
       std::vector<std::pair<const char*, const char*>>{{"key twice", "the key hidden_size is listed twice"},
                                                        {"architecture twice", "WrongForCausalLM is listed twice"}})
    EXPECT_THAT(refusal(mistake, "\"WrongForCausalLM\"", "model-wrong"),
                AllOf(HasSubstr(text("{}/model-wrong.so: architectures() of model-wrong: ", TEST_PLUGINS)),
                      HasSubstr(why), HasSubstr("report it to its author")));
  EXPECT_THAT(refusal("exception", "\"WrongForCausalLM\"", "model-wrong"),
              AllOf(HasSubstr("model-wrong, architectures()"), HasSubstr("no tables today")));
  EXPECT_THAT(refusal("crash", "\"WrongForCausalLM\"", "model-wrong"),
              AllOf(HasSubstr("model-wrong.so"), HasSubstr("architectures() crashed with SIGABRT")));
}

/// Others of the same folder can be used.
TEST_F(WrongTables, AreANoteInASearch) {
  EXPECT_THAT(refusal("key twice"),
              AllOf(HasSubstr("no model plugin has the architecture WrongForCausalLM"), HasSubstr("GroupedForCausalLM"),
                    HasSubstr("cannot be used: "), HasSubstr("the key hidden_size is listed twice")));
  EXPECT_EQ(refusal("key twice", "\"GroupedForCausalLM\"", "model-grouped"), "no error");
}

TEST_F(WrongTables, OfParametersNameThePlugin) {
  for (const auto& [mistake, why] : std::vector<std::pair<const char*, const char*>>{
           {"row twice", "parameter \"block {}/qkv.weight\" is listed twice"},
           {"two rows", "parameter \"block 0/up.weight\" matches two rows"},
           {"no row", "parameter \"embedding/tokens.weight\" has no row"},
           {"two numbers", "is not a name with one {} at most"},
           {"no number", "parameter \"block {}/down.weight\" and its tensor \"down.weight\" must both contain \"{}\""},
           {"groups", "the row of parameter \"block 0/qkv.weight\" has a part of 8 rows, which 3 groups do not divide"},
           {"tensor twice", "tensor \"model.embed_tokens.weight\" belongs to two parameters"}})
    EXPECT_THAT(refusal(mistake), AllOf(HasSubstr("model-wrong.so: parameters() of model-wrong: "), HasSubstr(why),
                                        HasSubstr("report it to its author")))
        << mistake;
  EXPECT_THAT(refusal("exception in parameters"),
              AllOf(HasSubstr("model-wrong, parameters()"), HasSubstr("no rows today")));
}

TEST_F(WrongTables, AnUnclearConfigIsNotGuessed) {
  EXPECT_THAT(refusal("none", "\"WrongForCausalLM\", \"GroupedForCausalLM\""),
              HasSubstr("architectures has several names: WrongForCausalLM, GroupedForCausalLM\n  keep the one whose "
                        "weights the folder has"));
  EXPECT_THAT(refusal("same type", ""),
              HasSubstr("model-wrong has several architectures with model_type \"wrong\": WrongForCausalLM, "
                        "OtherForCausalLM\n  set architectures to a list with one of them"));
  test::write_file(folder_ / "config.json", R"({"architectures": null, "model_type": null})");
  EXPECT_THAT(error_of([&] { choose_architecture(read_model_config(folder_.path()), {}, {}); }),
              HasSubstr("config.json: has neither architectures nor model_type"));
}

} // namespace
} // namespace triax::hf
