import js from "@eslint/js";
import globals from "globals";

// Names and texts of a batch may hold anything, so nothing is ever read as markup.
const markup = ["innerHTML", "outerHTML"].map((name) => ({
  selector: `MemberExpression[property.name='${name}']`,
  message: "Texts of a batch reach the page through textContent.",
}));
const calls = ["insertAdjacentHTML", "write", "writeln", "createContextualFragment"].map((name) => ({
  selector: `CallExpression[callee.property.name='${name}']`,
  message: "Texts of a batch reach the page through textContent.",
}));

export default [
  js.configs.recommended,
  {
    files: ["**/*.js"],
    languageOptions: { ecmaVersion: 2022, sourceType: "module", globals: globals.browser },
    linterOptions: { reportUnusedDisableDirectives: "error" },
    rules: {
      eqeqeq: "error",
      "consistent-return": "error",
      "max-statements-per-line": ["error", { max: 1 }],
      "max-len": ["error", { code: 120 }],
      "no-eval": "error",
      "no-implied-eval": "error",
      "no-new-func": "error",
      "no-restricted-syntax": ["error", ...markup, ...calls],
      "no-shadow": "error",
      "no-use-before-define": ["error", { functions: false, variables: false }],
      "no-var": "error",
      "one-var": ["error", "never"],
      "prefer-const": "error",
    },
  },
];
