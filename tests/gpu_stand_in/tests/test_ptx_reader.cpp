// SPDX-License-Identifier: Apache-2.0
// What the PTX reader refuses, and launches that do not fit their kernel.
#include <gmock/gmock.h>

#include "ptx_harness.hpp"

namespace triax::test {

namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string refusal(const std::string& body, const std::string& functions = "") {
  try {
    gsi::read_module(
        module_of(functions +
                  ".entry k(.param .u64 p)\n{\n.reg .b32 %r<4>;\n.reg .b64 %x;\n.reg .f32 %f;\n.reg .pred %q;\n" +
                  body + "\nret;\n}\n"))
        ->find("k");
  } catch (const gsi::PtxError& e) {
    return e.what();
  }
  return "";
}

} // namespace

TEST(PtxReader, RefusesUnknownPtx) {
  EXPECT_EQ(refusal("add.u32 %r0, %r1, %r2;"), "");
  EXPECT_THAT(refusal("sad.u32 %r0, %r1, %r2, %r3;"),
              AllOf(HasSubstr("PTX line 10"), HasSubstr("unknown instruction: sad.u32"), HasSubstr("kernel k")));
  EXPECT_THAT(refusal("add.wild.u32 %r0, %r1, %r2;"), HasSubstr("unknown modifier .wild"));
  EXPECT_THAT(refusal("ld.release.gpu.global.u32 %r0, [%x];"), HasSubstr("unknown modifier .release"));
  EXPECT_THAT(refusal("st.acquire.gpu.global.u32 [%x], %r0;"), HasSubstr("unknown modifier .acquire"));
  EXPECT_THAT(refusal("add.u32 %r0, %r1, %r9;"), HasSubstr("unknown register: %r9"));
  EXPECT_THAT(refusal("bra NOWHERE;"), HasSubstr("unknown label: NOWHERE"));
  EXPECT_THAT(refusal("mov.u64 %x, nothing;"), HasSubstr("unknown symbol: nothing"));
  EXPECT_THAT(refusal("add.u32 %r0, %r1, %x;"), HasSubstr("another width"));
  EXPECT_THAT(refusal("add.u32 %r0, %r1, %q;"), HasSubstr("predicate"));
  EXPECT_THAT(refusal("mul.lo.b8 %r0, %r1, %r2;"), HasSubstr("not supported with these types"));
  EXPECT_THAT(refusal("mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32 {%f}, {%r0}, {%r1}, {%f};"),
              HasSubstr("unknown modifier"));
  EXPECT_THAT(refusal("shfl.bfly.b32 %r0, %r1, 1, 31;"), HasSubstr("without .sync"));
  EXPECT_THAT(refusal("setp.eq.and.u32 %q, %r0, %r1, %q;"), HasSubstr("unknown modifier .and"));
  EXPECT_THAT(refusal("call.uni far, (p);"), HasSubstr("unknown function: far"));
  EXPECT_THAT(refusal(".surfref s;"), HasSubstr("unknown directive"));
  EXPECT_THAT(refusal("add.u32 %r0, %r1, \x01;"), HasSubstr("unknown character"));
}

// One statement of a kernel each, and what its refusal says.
TEST(PtxReader, RefusesStatementsByName) {
  const std::pair<const char*, const char*> cases[] = {
      {".local .b8 x[4] y;", "unknown declaration: .local .b8 x"},
      {".reg %r9;", "register without a type: %r9"},
      {".reg .b7 %r9;", "unknown type: .b7"},
      {"@%r0 add.u32 %r0, %r1, %r2;", "unknown predicate: %r0"},
      {"@%q call.uni far, (p);", "call under a predicate is not supported: @%q call.uni far"},
      {"add.u32 %r0, %r1, %clock;", "clock is supported in mov only"},
      {"call (%r0);", "call without a function"},
      {"call.uni twice, (x, x);", "call with another number of parameters than the function has: twice"},
      {"call.uni twice, (x);", "unknown parameter of a call: x"},
      {"call.uni again;", "calls are nested too deeply (recursion is not supported): again"},
      {"add.u32 %r0, %r1, 09;", "invalid number: 09"},
      {"add.u32 %r0, %r1, 1x;", "invalid number: 1x"},
      {"setp.u32 %q, %r0, %r1;", "instruction needs exactly one operation: setp.u32"},
      {"setp.eq.ne.u32 %q, %r0, %r1;", "instruction needs exactly one operation: setp.eq.ne.u32"},
      {"mma.sync.aligned.m16n8k16.row.col.f32.f16.bf16.f32 {%f}, {%r0}, {%r1}, {%f};",
       "unknown shape or types of a matrix product"},
      {"add.u32.u32 %r0, %r1, %r2;", "more types than the instruction takes: add.u32.u32"},
      {"add.u32 %r0, !%r1, %r2;", "negated operand is not supported: !%r1"},
      {"mov.u64 %x, p+;", "unknown operand: p+"},
      {"add.u32 {%r0, %r0, %r0, %r0, %r0, %r0, %r0, %r0, %r0, %r0, %r0, %r0, %r0, %r0, %r0, %r0, %r0}, %r1, %r2;",
       "too many operands"},
      {"ld.global.u32 %r0, [%x+4+%r1];", "unknown address: [%x"},
      {"add.u32 %r0|%q, %r1, %r2;", "two results are not supported here"},
      {"ld.global.u32 %r0;", "too few operands"},
      {"abs.ftz.f32 %f, %f;", "unknown modifier .ftz: abs.ftz.f32"},
      {"neg.ftz.f32 %f, %f;", "unknown modifier .ftz: neg.ftz.f32"},
      {"vote.any.pred %q, %q;", "without .sync is not supported"},
      {"ld.global.v2.u64 {%x}, [%x];", "not supported with these types"},
      {"atom.u32.add %r0, [%x], 1;", "not supported with these types"}, // a generic address
      {"red.global.add.f16 [%x], %r0;", "not supported with these types"},
      {"red.global.add.noftz.f32 [%x], %f;", "unknown modifier .noftz"}, // PTX has it for 16 bits only
      {"cvta.u64 %x, %x;", "not supported with these types"},
      {"/* no end", "comment without an end"},
      {"\"no end", "string without an end"}};
  const std::string functions = ".func twice(.param .b32 x)\n{\nret;\n}\n.func again()\n{\ncall.uni again;\nret;\n}\n";
  for (const auto& [statement, text] : cases) EXPECT_THAT(refusal(statement, functions), HasSubstr(text)) << statement;
}

TEST(PtxReader, RefusesDeclarationsByName) {
  const std::pair<const char*, const char*> cases[] = {
      {".texref t;", "unknown directive: .texref"},
      {".global .b7 x;", "unknown type: .b7"},
      {".global x;", "declaration without a type: x"},
      {".global .f32 x = 1.5;", "unknown initial value: 1.5"},
      {".global .b32 x[1] = {1, 2};", "more initial values than the variable has: x"},
      {".extern .global .b32 x;", "variable of another module is not known: x"},
      {".global .b32 x", "unexpected end of the module behind: x"},
      {".global .b32 x }", "expected ;: }"},
      {".entry k(.b32 x)\n{\nret;\n}\n", "expected .param: .b32"},
      {".entry k()\n.maxclusterrank 8\n{\nret;\n}\n", "unknown directive of a function: .maxclusterrank"},
      {".entry k()\n{\nret;\n", "body without an end"},
      {".entry k()\n{\nadd.u32\n}\n", "statement without an end: add.u32"},
      {".entry k();\n", "function without a body: k"}};
  for (const auto& [declaration, text] : cases) {
    std::string error;
    try {
      gsi::read_module(module_of(declaration))->find("k");
    } catch (const gsi::PtxError& e) {
      error = e.what();
    }
    EXPECT_THAT(error, HasSubstr(text)) << declaration;
  }
}

TEST(PtxReader, ReadsTheDeclarationsOfKernels) {
  const auto module =
      gsi::read_module(module_of(".shared .align 16 .b8 tile[100];\n.visible .entry k(.param .u32 a, .param .align 16 "
                                 ".b8 b[24], .param .u64 c)\n.maxntid 128, 2, 1\n.minnctapersm 3\n"
                                 "{\n.reg .b32 %r;\n.local .align 8 .b8 depot[20];\nmov.u32 %r, tile;\nret;\n}\n.entry "
                                 "r()\n.reqntid 64, 1, 1\n{\nret;\n}\n"));
  EXPECT_EQ(module->find("other"), nullptr);
  const gsi::Kernel& k = *module->find("k");
  ASSERT_EQ(k.params.size(), 3u);
  EXPECT_EQ(k.params[1].offset, 16u);
  EXPECT_EQ(k.params[2].offset, 40u);
  EXPECT_EQ(k.param_bytes, 48u);
  EXPECT_EQ(k.static_shared_bytes, 112u);
  EXPECT_EQ(k.local_bytes, 32u);
  EXPECT_EQ(k.max_threads.count(), 256u);
  EXPECT_EQ(module->find("r")->required_threads.x, 64u);
}

TEST(PtxReader, LaunchesThatDoNotFit) {
  Machine m(
      ".entry k(.param .u64 p)\n.maxntid 64, 1, 1\n{\nret;\n}\n.entry r(.param .u64 p)\n.reqntid 32, 1, "
      "1\n{\nret;\n}\n");
  EXPECT_EQ(m.error_of("k", {1}, {64}, {0}), "");
  EXPECT_THAT(m.error_of("k", {1}, {65}, {0}), HasSubstr("compiled for at most 64"));
  EXPECT_THAT(m.error_of("k", {1}, {2000}, {0}), HasSubstr("1 to 1024"));
  EXPECT_THAT(m.error_of("k", {0}, {32}, {0}), HasSubstr("has no block"));
  EXPECT_THAT(m.error_of("k", {1u << 31}, {32}, {0}), HasSubstr("more blocks than the machine can count"));
  EXPECT_THAT(m.error_of("k", {1}, {32}, {0, 0}), HasSubstr("the kernel takes 8"));
  EXPECT_THAT(m.error_of("r", {1}, {64}, {0}), HasSubstr("compiled for (32, 1, 1)"));
  EXPECT_EQ(m.kind, gsi::ErrorKind::kLaunch);
}

} // namespace triax::test
