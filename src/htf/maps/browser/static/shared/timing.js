/* Waiting. Times are in milliseconds. */

export const pause = (wait) => new Promise((resolve) => setTimeout(resolve, wait));

/* Runs an action once nobody has called for it for a while. */
export function debounced(action, wait) {
  let timer = null;
  return (...given) => {
    clearTimeout(timer);
    timer = setTimeout(() => action(...given), wait);
  };
}
