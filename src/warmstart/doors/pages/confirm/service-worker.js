// Shows pushes and opens the request that they are about. It caches nothing and decides nothing.

const ADDRESS = /^#\/request\/[0-9a-f]{32}$/;

self.addEventListener("install", () => self.skipWaiting());
self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));

self.addEventListener("push", (event) => {
  let given = {};
  try {
    given = event.data?.json() ?? {};
  } catch {
    // shown without its text
  }
  const title = typeof given.title === "string" ? given.title : "Approval needed";
  const body = typeof given.body === "string" ? given.body : "Open the page to see it.";
  const hash = ADDRESS.test(given.hash) ? given.hash : "#/";
  event.waitUntil(
    self.registration.showNotification(title, { body, tag: hash, icon: "/assets/icon-192.png", badge: "/assets/icon-192.png", data: { hash }, requireInteraction: true }),
  );
});

self.addEventListener("notificationclick", (event) => {
  event.notification.close();
  event.waitUntil(open(event.notification.data?.hash ?? "#/"));
});

async function open(hash) {
  const address = `/${hash}`;
  const [page] = await self.clients.matchAll({ type: "window", includeUncontrolled: true });
  if (!page) return self.clients.openWindow(address);
  await page.focus();
  return page.navigate(address);
}
