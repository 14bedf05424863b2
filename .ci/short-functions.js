/* A rule for `deno lint`: no function over 50 lines, as in Python (tests/unit/test_architecture.py). */

const MOST_LINES = 50;

function create(context) {
  const check = (node) => {
    const lines = context.sourceCode.getText(node).split("\n").length;
    if (lines <= MOST_LINES) return;
    context.report({ node, message: `This function has ${lines} lines, ${MOST_LINES} at most` });
  };
  return {
    FunctionDeclaration: check,
    FunctionExpression: check, // methods too
    ArrowFunctionExpression: check,
  };
}

export default { name: "htf", rules: { "short-functions": { create } } };
